/* librose-rr: a program records its nondeterministic inputs (messages, times, random numbers, the order of locks), and
 * `rose replay --recording FILE -- CMD` runs it again alone from the recording. The program decides what is recorded;
 * nothing else is.
 *
 * The environment selects the mode:
 *
 * - ROSE_RR=record:FILE records to a window: a ring of ROSE_RR_WINDOW bytes (default 16MiB) in FILE, which is mapped
 *   into memory, so that kill -9 loses nothing. In FILE, %n stands for an unused number (the ROSE_RR_KEEP newest files,
 *   default 8, are kept) and %p for the process id.
 * - ROSE_RR=replay:FILE replays. A difference from the recording ends the process with status 1 and a message that
 *   locates it; an unreadable file ends it with status 2.
 * - Without ROSE_RR, every call costs one branch, and its arguments are not evaluated.
 *
 * Order: records have a total order over all threads that agrees with every happened-before relation. During a replay,
 * a call waits until the next record has its key. A key must therefore belong to one caller at a time ("timer",
 * "peer/2", "client/17"): threads that may make the same call concurrently need different keys. The recorded order is
 * also enforced between calls that no lock or message orders. A program with data races cannot be replayed.
 *
 * Keys have 1 to 255 bytes. All functions may be called from any thread, none from signal handlers. A forked child
 * records nothing. Costs: src/README.md.
 *
 * SPDX-FileCopyrightText: the rose authors
 * SPDX-License-Identifier: MIT */
#ifndef ROSE_RR_H
#define ROSE_RR_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* 1 during a replay, or during recording and replay; otherwise 0. */
int rose_rr_replaying(void);
int rose_rr_on(void);

/* Recording: stores `size` bytes (0 and NULL: only that the event happened). Replaying: waits for its turn, then copies
 * the recorded bytes to `data`. If the recorded size is not `size`, the replay has diverged. More than a quarter of the
 * window cannot be stored, and such a recording cannot be replayed beyond that point. */
void rose_rr_record(const char *key, void *data, size_t size);
/* The same for varying sizes: `data` has space for `room` bytes. Returns the recorded size. */
size_t rose_rr_record_sized(const char *key, void *data, size_t size, size_t room);

/* A result of the program, such as a response or a hash of its state. Recording: stored (its hash if longer than 64
 * bytes). Replaying: a different value means that the replay has diverged. */
void rose_rr_compare(const char *key, const void *data, size_t size);

/* For a mutex whose acquisition order matters: call rose_rr_lock(key), lock it, then call rose_rr_locked(key), or
 * rose_rr_record(key, ...) to store data as well. When recording, the second call writes the record. When replaying,
 * the first call waits for its turn, so that no thread waits while it holds the mutex. rose_rr_lock returns the size of
 * that record when replaying, otherwise 0. */
size_t rose_rr_lock(const char *key);
void rose_rr_locked(const char *key);

/* During a replay, no messages arrive from outside. Instead, `function` is called with each recorded message of `key`
 * when it is its turn, in a thread of the library (one call per key at a time, unless a call blocks). It must deliver
 * the message to the program as if it had arrived; the program's own call of rose_rr_record(key, ...) then takes it. A
 * `key` that ends in * stands for all keys with that prefix. Call this when the program is ready for messages. */
typedef void (*rose_rr_function)(void *context, const char *key, const void *data, size_t size);
void rose_rr_reproducer(const char *key, rose_rr_function function, void *context);

/* A checkpoint is the state that is needed to continue from this point. Recording stores it, replaying compares it. If
 * the beginning of the window was overwritten, the replay starts at the first checkpoint in it. rose_rr_checkpoint_due
 * returns 1 when the next one should be made. Ask at points at which one can be made, in the thread that wrote the last
 * record, while no other thread is between two records that belong together. */
int rose_rr_checkpoint_due(const char *key);
void rose_rr_checkpoint(const char *key, const void *data, size_t size);
/* Call this before any other function. Returns 1 and the checkpoint with which the replay starts (valid until the
 * process ends), or 0 for a normal start. */
int rose_rr_restore(const char *key, const void **data, size_t *size);

/* Marks that the process ends on purpose; exit() does this by itself. Later records of other threads are not replayed.
 * Returns to the caller. */
void rose_rr_end(void);
/* `function` is called when everything has been replayed, before the process ends with status 0. It must not take a
 * lock that is held during calls of this library. */
void rose_rr_at_end(void (*function)(void *context), void *context);

extern int rose_rr_mode_; /* 0: off; only for the macros below */
#define ROSE_RR_ON_ __builtin_expect(__atomic_load_n(&rose_rr_mode_, __ATOMIC_RELAXED) != 0, 0)
#define rose_rr_replaying() (ROSE_RR_ON_ ? rose_rr_replaying() : 0)
#define rose_rr_on() (ROSE_RR_ON_ ? rose_rr_on() : 0)
#define rose_rr_record(key, data, size) (ROSE_RR_ON_ ? rose_rr_record(key, data, size) : (void)0)
#define rose_rr_compare(key, data, size) (ROSE_RR_ON_ ? rose_rr_compare(key, data, size) : (void)0)
#define rose_rr_lock(key) (ROSE_RR_ON_ ? rose_rr_lock(key) : 0)
#define rose_rr_locked(key) (ROSE_RR_ON_ ? rose_rr_locked(key) : (void)0)
#define rose_rr_checkpoint_due(key) (ROSE_RR_ON_ ? rose_rr_checkpoint_due(key) : 0)

#ifdef __cplusplus
}
#endif
#endif
