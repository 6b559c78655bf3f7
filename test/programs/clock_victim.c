/* Prints what a process's clocks show. Modes:
 *   watch      prints a line every 5 ms, "now LIBC TIMEOFDAY TIME RAW MONOTONIC TOOK": each clock minus the real
 *              time in us (TIME in s), and how long reading the clocks took
 *   once       one line, "once ..." with the same numbers
 *   spawn      as watch, and every 50 ms starts another program that prints `once`
 *   wait MS    waits MS ms by absolute times of the real-time clock in every available way, repeatedly, and prints
 *              how long that took in us: "waited COND SEM SLEEP TIMER"
 *   cost       prints the nanoseconds of one clock read */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t ns_of(const struct timespec* at) { return at->tv_sec * 1000000000LL + at->tv_nsec; }

/* Reads the real-time clock by adjtimex(), which no fault changes. */
static int64_t reference(void) {
  struct timex now = {0};
  adjtimex(&now);
  return now.time.tv_sec * 1000000000LL + now.time.tv_usec * ((now.status & STA_NANO) != 0 ? 1 : 1000);
}

static int64_t libc_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return ns_of(&now);
}

static void print_clocks(const char* what) {
  struct timespec raw;
  struct timeval day;
  const int64_t before = reference();
  const int64_t libc = libc_clock(CLOCK_REALTIME);
  gettimeofday(&day, NULL);
  const int64_t whole = time(NULL);
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &raw);
  const int64_t monotonic = libc_clock(CLOCK_MONOTONIC);
  const int64_t took = reference() - before;
  printf("%s %lld %lld %lld %lld %lld %lld\n", what, (long long)(libc - before) / 1000,
         (long long)(day.tv_sec * 1000000LL + day.tv_usec - before / 1000), (long long)(whole - before / 1000000000),
         (long long)(ns_of(&raw) - before) / 1000, (long long)(monotonic - before) / 1000, (long long)took / 1000);
  fflush(stdout);
}

static struct timespec in_ms(int ms) {
  const int64_t at = libc_clock(CLOCK_REALTIME) + ms * 1000000LL;
  const struct timespec when = {at / 1000000000, at % 1000000000};
  return when;
}

static long cond_wait(int ms) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  const int64_t began = reference();
  struct timespec until = in_ms(ms); /* not const: rose writes to it */
  const struct timespec same = until;
  pthread_mutex_lock(&mutex);
  while (pthread_cond_timedwait(&cond, &mutex, &until) != ETIMEDOUT) {
  }
  pthread_mutex_unlock(&mutex);
  /* If `until` is already over, the call may return before rose restores `until`. It must be restored soon. */
  for (int i = 0; i < 1000 && memcmp(&until, &same, sizeof same) != 0; i++) {
    if (i == 0) puts("late");
    usleep(10000);
    __asm__ volatile("" ::: "memory");
  }
  if (memcmp(&until, &same, sizeof same) != 0) puts("spoiled");
  return (long)((reference() - began) / 1000);
}

static long sem_wait_for(int ms) {
  sem_t sem;
  sem_init(&sem, 0, 0);
  const int64_t began = reference();
  const struct timespec until = in_ms(ms);
  while (sem_timedwait(&sem, &until) != 0 && errno == EINTR) {
  }
  return (long)((reference() - began) / 1000);
}

static long sleep_until(int ms) {
  const int64_t began = reference();
  const struct timespec until = in_ms(ms);
  while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
  return (long)((reference() - began) / 1000);
}

static long timer_until(int ms) {
  const int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
  uint64_t ticks = 0;
  const int64_t began = reference();
  const struct itimerspec until = {.it_value = in_ms(ms)};
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &until, NULL);
  if (read(fd, &ticks, sizeof ticks) != sizeof ticks) puts("no ticks");
  close(fd);
  return (long)((reference() - began) / 1000);
}

static void spawn_once(char* self) {
  extern char** environ;
  char* words[] = {self, "once", NULL};
  pid_t child = 0;
  if (posix_spawn(&child, self, NULL, NULL, words, environ) == 0) waitpid(child, NULL, 0);
}

static void cost(void) {
  enum { READS = 1000 }; /* few, because on some machines each read is a system call */
  const int64_t began = reference();
  for (int i = 0; i < READS; i++) libc_clock(CLOCK_REALTIME);
  printf("cost %.1f\n", (double)(reference() - began) / READS);
  fflush(stdout);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "once") == 0) {
    for (int i = 0; i < 20; i++) print_clocks("once");
    return 0;
  }
  for (int round = 0;; round++) {
    if (strcmp(what, "wait") == 0) {
      const int ms = atoi(argv[2]);
      const long cond = cond_wait(ms), sem = sem_wait_for(ms), sleep = sleep_until(ms), timer = timer_until(ms);
      printf("waited %ld %ld %ld %ld\n", cond, sem, sleep, timer);
      fflush(stdout);
    } else if (strcmp(what, "cost") == 0) {
      cost();
    } else {
      if (round == 1) fork(); /* the child, which executes no other program, watches its clocks, too */
      print_clocks("now");
      if (strcmp(what, "spawn") == 0 && round % 10 == 0) spawn_once(argv[0]);
      usleep(5000);
    }
  }
}
