/* librose-rr: a program records what it cannot foresee (messages, times, chances, the order of locks), and `rose replay
 * --recording FILE -- CMD` runs it again alone, from what was recorded. The program says what that is; nothing else is
 * recorded.
 *
 * ROSE_RR=record:FILE   Records into a window: a ring of ROSE_RR_WINDOW bytes (16MiB) in FILE, mapped into memory; kill
 * -9 loses nothing. %n in FILE is a number that no file has yet (the ROSE_RR_KEEP, 8, newest stay), %p the process id.
 * ROSE_RR=replay:FILE   Replays. What differs from the recording ends the process with status 1 and says where; a bad
 * file, with 2. Neither               Every call costs one branch, and its arguments are not evaluated.
 *
 * Order: records have one order, over all threads, which every happened-before relation agrees with. While replaying, a
 * call waits until the next record is its key's. So a key belongs to one caller at a time: "timer", "peer/2",
 * "client/17"; threads that may make the same call at once need keys that tell them apart. Of calls without a common
 * order (no lock, no message between them) the recorded one is enforced. A program with data races is not replayed by
 * this. Cost: src/README.md. Keys: 1 to 255 bytes. All functions may be called from any thread, none from signal
 * handlers. A forked child records nothing.
 *
 * SPDX-FileCopyrightText: the rose authors
 * SPDX-License-Identifier: MIT */
#ifndef ROSE_RR_H
#define ROSE_RR_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

/* 1 while replaying, or while recording or replaying; else 0. */
int rose_rr_replaying(void);
int rose_rr_on(void);

/* Recording: keeps `size` bytes (0 and NULL: only that it happened). Replaying: waits for its turn, then puts the
 * recorded bytes into `data`; a recorded size other than `size` is a divergence. More than a quarter of the window
 * cannot be kept and cannot be replayed. */
void rose_rr_record(const char *key, void *data, size_t size);
/* The same for sizes that vary: `data` has room for `room` bytes. Returns the recorded size. */
size_t rose_rr_record_sized(const char *key, void *data, size_t size, size_t room);

/* What the program made of it (an answer, a hash of its state). Recording: kept (above 64 bytes, its hash). Replaying:
 * what differs is a divergence. */
void rose_rr_compare(const char *key, const void *data, size_t size);

/* A mutex whose order matters: rose_rr_lock(key), lock it, rose_rr_locked(key) (or rose_rr_record(key, ...), when
 * something is to be kept too). Recording: the second makes the record. Replaying: the first waits for its turn, so
 * nobody waits who holds the mutex. rose_rr_lock returns the size of the record whose turn it is, 0 unless replaying.
 */
size_t rose_rr_lock(const char *key);
void rose_rr_locked(const char *key);

/* Messages from outside do not come by themselves while replaying: `function` is then called with each recorded message
 * of `key`, in its turn, in a thread of the library (one call a key at a time, unless that one stays away). It gives
 * the message to the program as if it had come, and there the program's own rose_rr_record(key, ...) takes it. A `key`
 * that ends in * stands for all that begin so. Call it when messages can come. */
typedef void (*rose_rr_function)(void *context, const char *key, const void *data, size_t size);
void rose_rr_reproducer(const char *key, rose_rr_function function, void *context);

/* All that is needed to go on from here: recording keeps it, replaying compares it. A window whose beginning was
 * overwritten is replayed from the first checkpoint that it has. Due: 1 when it is time for the next one; ask where one
 * can be made, from the thread that made the last record, while no other thread is between two records that belong
 * together. */
int rose_rr_checkpoint_due(const char *key);
void rose_rr_checkpoint(const char *key, const void *data, size_t size);
/* To be asked before any other call: 1 and the checkpoint that the replay begins with (valid until the process ends),
 * or 0: begin as usual. */
int rose_rr_restore(const char *key, const void **data, size_t *size);

/* The process ends here, on purpose (exit says so itself): what others record after this is not replayed. Returns. */
void rose_rr_end(void);
/* Called once all is replayed, before the process is ended with status 0; it takes no lock that is held across a call
 * of this library. */
void rose_rr_at_end(void (*function)(void *context), void *context);

extern int rose_rr_mode_; /* 0: off; only for what follows */
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
