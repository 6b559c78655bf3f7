/* Prints values that no program can foresee: times, random numbers, names, and which descriptor is ready first. The
 * program contains no code for recording.
 * Usage: unforeseen [more | fresh]: `more` asks for the time once more, `fresh` never reuses memory. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;

static long long now(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

/* A thread that prints its time four times. The order in which the threads print is random. */
static void* by_turns(void* name) {
  for (int i = 0; i < 4; i++) {
    long long at = now(CLOCK_MONOTONIC);
    uint32_t chance = 0;
    getrandom(&chance, sizeof chance, 0);
    pthread_mutex_lock(&output_lock);
    printf("%s %d at %lld: %u\n", (const char*)name, i, at, chance);
    pthread_mutex_unlock(&output_lock);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  struct timeval day;
  struct utsname system;
  char host[65];
  gettimeofday(&day, NULL);
  printf("time %lld %lld.%06ld %lld\n", (long long)time(NULL), (long long)day.tv_sec, (long)day.tv_usec,
         now(CLOCK_REALTIME));
  if (strcmp(how, "more") == 0) printf("%lld\n", (long long)time(NULL));
  uint64_t chance = 0;
  if (getrandom(&chance, sizeof chance, 0) != sizeof chance) return 3;
  uint32_t other = 0;
  if (getentropy(&other, sizeof other) != 0) return 3;
  printf("random %llu %u\n", (unsigned long long)chance, other);
  gethostname(host, sizeof host);
  uname(&system);
  printf("pid %d %d host %s %s\n", getpid(), getppid(), host, system.nodename);

  int pipes[3][2];
  int set = epoll_create1(0);
  char* words[3];
  for (int i = 0; i < 3; i++) {
    if (pipe(pipes[i]) != 0) return 3;
    words[i] = malloc(16); /* addresses differ in each run */
    sprintf(words[i], "pipe %d", i);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = words[i]};
    epoll_ctl(set, EPOLL_CTL_ADD, pipes[i][0], &event);
  }
  /* Which pipes are ready is random, too. */
  for (int i = 0; i < 3; i++)
    if ((chance >> i & 1) != 0 || i == 1)
      if (write(pipes[i][1], "x", 1) != 1) return 3;
  struct epoll_event ready[3];
  int count = epoll_wait(set, ready, 3, 1000);
  for (int i = 0; i < count; i++) printf("ready %s %x\n", (char*)ready[i].data.ptr, ready[i].events);
  struct pollfd fds[3];
  for (int i = 0; i < 3; i++) fds[i] = (struct pollfd){.fd = pipes[i][0], .events = POLLIN};
  count = poll(fds, 3, 0);
  printf("poll %d: %d %d %d\n", count, fds[0].revents, fds[1].revents, fds[2].revents);
  fd_set some;
  FD_ZERO(&some);
  for (int i = 0; i < 3; i++) FD_SET(pipes[i][0], &some);
  struct timeval left = {1, 0};
  count = select(pipes[2][0] + 1, &some, NULL, NULL, &left);
  printf("select %d: %d %d %d\n", count, !!FD_ISSET(pipes[0][0], &some), !!FD_ISSET(pipes[1][0], &some),
         !!FD_ISSET(pipes[2][0], &some));
  printf("nothing %d\n", poll(NULL, 0, 1));

  /* Close a descriptor without removing it from the set. The next opened file gets its number, and, unless `fresh`, the
   * same memory serves as the user data of another descriptor in the set. */
  close(pipes[0][0]);
  close(pipes[0][1]);
  if (open("/dev/null", O_RDONLY) != pipes[0][0] || pipe(pipes[0]) != 0) return 3;
  char* late = strcmp(how, "fresh") == 0 ? malloc(16) : words[0];
  sprintf(late, "late");
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = late};
  epoll_ctl(set, EPOLL_CTL_ADD, pipes[0][0], &event);
  if (write(pipes[0][1], "x", 1) != 1) return 3;
  count = epoll_wait(set, ready, 3, 1000);
  for (int i = 0; i < count; i++) printf("then ready %s %x\n", (char*)ready[i].data.ptr, ready[i].events);

  pthread_t threads[3];
  char* names[3] = {"one", "two", "three"};
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, by_turns, names[i]);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  printf("end %lld\n", now(CLOCK_REALTIME));
  return 0;
}
