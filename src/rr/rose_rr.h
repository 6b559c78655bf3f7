/* librose-rr: a program records its nondeterministic inputs (messages, times, random numbers, the order of locks).
 * `rose replay --recording FILE -- CMD` then runs the program again, alone, from the recording. Only what the program
 * passes to these functions is recorded.
 *
 * The environment selects the mode:
 *
 * - ROSE_RR=record:FILE records to a window: a ring of ROSE_RR_WINDOW bytes (default 16MiB) in FILE. The file is
 *   mapped into memory, so kill -9 loses nothing. In FILE, %n stands for an unused number (the newest ROSE_RR_KEEP
 *   files, default 8, are kept), and %p for the process id.
 * - ROSE_RR=replay:FILE replays. A difference from the recording ends the process with status 1 and a message that
 *   locates it; an unreadable file ends it with status 2.
 * - Without ROSE_RR, every call costs one branch, and its arguments are not evaluated.
 *
 * Order: records have a total order over all threads, which agrees with every happened-before relation. During a
 * replay, a call waits until its key is that of the next record. A key must therefore belong to one caller at a time
 * ("timer", "peer/2", "client/17"), so threads that may make the same call concurrently need different keys. The
 * recorded order is enforced even between calls that no lock or message orders. A program with data races cannot be
 * replayed.
 *
 * Keys have 1 to 255 bytes. All functions may be called from any thread, but not from signal handlers. A forked child
 * records nothing. src/README.md states the costs.
 *
 * SPDX-FileCopyrightText: the rose authors
 * SPDX-License-Identifier: MIT */
#ifndef ROSE_RR_H
#define ROSE_RR_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* rose_rr_replaying() returns 1 during a replay, rose_rr_on() during a recording or a replay. Otherwise both return
 * 0. */
int rose_rr_replaying(void);
int rose_rr_on(void);

/* When recording, stores `size` bytes (with 0 and NULL, only that the event happened). When replaying, waits for its
 * turn, then copies the recorded bytes to `data`; if the recorded size is not `size`, the replay has diverged. A single
 * call cannot store more than a quarter of the window; the recording can be replayed only up to a larger call. */
void rose_rr_record(const char *key, void *data, size_t size);
/* Like rose_rr_record(), for data of varying size: `data` has space for `room` bytes. Returns the recorded size. */
size_t rose_rr_record_sized(const char *key, void *data, size_t size, size_t room);

/* Compares a result of the program, such as a response or a hash of its state. When recording, stores the value, or its
 * hash if it is longer than 64 bytes. When replaying, a different value means that the replay has diverged. */
void rose_rr_compare(const char *key, const void *data, size_t size);

/* For a mutex whose acquisition order matters: call rose_rr_lock(key), lock the mutex, then call rose_rr_locked(key),
 * or rose_rr_record(key, ...) to store data as well. When recording, the second call writes the record. When replaying,
 * the first call waits for its turn, so that no thread waits while it holds the mutex. rose_rr_lock then returns the
 * size of the data that the second call recorded. When not replaying, it returns 0. */
size_t rose_rr_lock(const char *key);
void rose_rr_locked(const char *key);

/* During a replay, no messages arrive from outside. Instead, a thread of the library calls `function` with each
 * recorded message of `key` when it is the message's turn (one call per key at a time, unless a call blocks). The
 * function must deliver the message to the program as if it had arrived from outside. The program then calls
 * rose_rr_record(key, ...) for the message, as it did during the recording. A `key` that ends in * stands for all keys
 * with that prefix. Call rose_rr_reproducer() when the program is ready for messages. */
typedef void (*rose_rr_function)(void *context, const char *key, const void *data, size_t size);
void rose_rr_reproducer(const char *key, rose_rr_function function, void *context);

/* A checkpoint is the state that is needed to continue from this point. It is stored when recording, and compared when
 * replaying. If the beginning of the window was overwritten, the replay starts at the first checkpoint in the window.
 * rose_rr_checkpoint_due returns 1 when the next checkpoint should be made. Call it where a checkpoint can be made, in
 * the thread that wrote the most recent record, while no other thread is between two records that belong together. */
int rose_rr_checkpoint_due(const char *key);
void rose_rr_checkpoint(const char *key, const void *data, size_t size);
/* Call this before any other function. Returns 1 and the checkpoint with which the replay starts (valid until the
 * process ends), or 0 for a normal start. */
int rose_rr_restore(const char *key, const void **data, size_t *size);

/* Records that the process ends on purpose; exit() does this by itself. Later records of other threads are not
 * replayed. This function returns to the caller. */
void rose_rr_end(void);
/* When everything has been replayed, `function` is called before the process ends with status 0. It must not take a
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
