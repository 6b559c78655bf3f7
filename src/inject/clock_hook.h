// Declares what rose shares with the hook: code that rose copies into a process's vDSO, behind the kernel's code, and
// that shifts the clocks that the process reads (clock_hook.c). The hook's state is one block of parameters, which rose
// changes from outside while the process runs. C and C++ include this header.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum { ROSE_CLOCK_GROUPS = 2, ROSE_CLOCK_DISPLACED = 32 };
/* Functions: clock_gettime, gettimeofday, and time if the vDSO has it. */
#ifdef __x86_64__
enum { ROSE_CLOCK_FUNCTIONS = 3 };
#else
enum { ROSE_CLOCK_FUNCTIONS = 2 };
#endif
/* When a wrong clock is read, the hook reports it: it calls clock_gettime(REALTIME) with this address plus the number
 * of the clock's group. Two more arguments say where the reader's stack begins: the address of the hook's frame record
 * (the caller's frame pointer, followed by the return address), and the value that the caller's stack pointer has after
 * the return. rose answers the call. If rose does not, the call has no effect, because the kernel refuses the
 * address. */
#define ROSE_CLOCK_READ 0xff524f5345000000UL
#define ROSE_CLOCK_MAGIC 0x524f5345434c4b31ULL

/* A clock shows its normal time t plus `offset` + (t - base) * rate / 2^32. Times are in ns; `rate` has no unit. */
struct rose_clock_shift {
  long offset;
  long base;
  long rate;
};

/* There are two copies of the shifts. The lowest bit of `version` selects the valid one. The other one is written
 * first, and `version` last. */
struct rose_clock_parameters {
  unsigned long magic;
  unsigned long version;
  struct rose_clock_shift shift[2][ROSE_CLOCK_GROUPS]; /* realtime, monotonic */
  unsigned char heads[3][8];                           /* original first bytes of the functions */
  unsigned long announce; /* one bit per group: report readings of a wrong clock of the group */
};

/* The group of a clock; -1: none, the clock is not changed. */
static inline int rose_clock_group(int clock) {
  switch (clock) {
    case 0: /* REALTIME */
    case 5: /* REALTIME_COARSE */
    case 11: /* TAI */ return 0;
    case 1: /* MONOTONIC */
    case 4: /* MONOTONIC_RAW */
    case 6: /* MONOTONIC_COARSE */
    case 7: /* BOOTTIME */ return 1;
    default: return -1;
  }
}

__extension__ typedef __int128 rose_clock_wide;

static inline long rose_clock_more(const struct rose_clock_shift *shift, long now) {
  long more = shift->offset;

  if (shift->rate) more += (long)(((rose_clock_wide)(now - shift->base) * shift->rate) >> 32);
  return more;
}

#ifdef __cplusplus
}
#endif
