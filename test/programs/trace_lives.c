/* Processes that begin, wait and end in every way that a tracer must distinguish.
 *   starts EXE PROCS    starts children by clone, clone3, vfork and posix_spawn (of EXE, as "fail NAME"), a daemon (by
 *                       two forks), and a child that moves to another cgroup (by writing to PROCS). Each first fails
 *                       to open /rose-none/<kind>
 *   execs N             fails one open, then starts N children, one after another, each of which executes a program
 *   fail NAME           fails to open /rose-none/NAME, exits 7
 *   churn N             starts N children that end between fork and exec, half of them killed
 *   foreign N           makes N failing calls by their numbers of 32-bit programs; exit 77 if the kernel has none
 *   eat                 fills memory until killed
 *   core DIR            aborts in DIR with core dumps allowed
 *   blocked             waits uninterruptibly for a page of memory (by userfaultfd) until another byte comes on stdin;
 *                       exit 77 if there is no userfaultfd
 *   vfork               waits for a vforked child until another byte comes on stdin
 *   wait                waits until stdin ends; `orphan` does the same as the leader of a new session
 * All modes except `fail` first print "ready 1". Those that do more than wait for stdin's end then wait for "go". */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail_open(const char *kind) {
  char path[64] = "/rose-none/";
  strcat(path, kind);
  if (open(path, O_RDONLY) >= 0) _exit(92);
}

static void sleep_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&t, &t) != 0) {}
}

static int reap(pid_t child) {
  int status = 0;
  if (child <= 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int starts(char *exe, const char *procs) {
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    fail_open("clone");
    _exit(0);
  }
  if (reap(child) != 0) return 90;

  struct clone_args args;
  memset(&args, 0, sizeof args);
  args.exit_signal = SIGCHLD;
  child = (pid_t)syscall(SYS_clone3, &args, sizeof args);
  if (child == 0) {
    fail_open("clone3");
    _exit(0);
  }
  if (reap(child) != 0) return 90;

  child = vfork();
  if (child == 0) {
    open("/rose-none/vfork", O_RDONLY);
    _exit(0);
  }
  if (reap(child) != 0) return 90;

  char *spawned[] = {exe, "fail", "spawn", 0};
  if (posix_spawn(&child, exe, 0, 0, spawned, 0) != 0 || reap(child) != 7) return 90;

  /* A daemon: waits until its parent has ended before it does anything. */
  int ready[2];
  char c;
  if (pipe(ready) != 0) return 90;
  child = fork();
  if (child == 0) {
    setsid();
    pid_t was = getpid();
    if (fork() == 0) {
      while (getppid() == was) sleep_ms(1); /* until its parent has ended */
      fail_open("daemon");
      if (write(ready[1], "x", 1) != 1) _exit(1);
    }
    _exit(0);
  }
  if (reap(child) != 0) return 90;
  if (read(ready[0], &c, 1) != 1) return 90;

  child = fork();
  if (child == 0) {
    int fd = open(procs, O_WRONLY);
    if (fd < 0 || write(fd, "0", 1) != 1) _exit(1);
    fail_open("moved");
    if (fork() == 0) {
      fail_open("moved-child");
      _exit(0);
    }
    int status;
    wait(&status);
    _exit(0);
  }
  return reap(child) == 0 ? 0 : 90;
}

static int churn(int count) {
  for (int i = 0; i < count; i++) {
    pid_t child = fork();
    if (child == 0) {
      if (i % 2) _exit(3);
      for (;;) pause();
    }
    if (child < 0) return 90;
    if (i % 2 == 0) kill(child, SIGKILL);
    waitpid(child, 0, 0);
  }
  return 0;
}

/* Fails one open, and then starts one child after another, each of which executes a program. */
static int execs(char *exe, int count) {
  fail_open("before");
  for (int i = 0; i < count; i++) {
    pid_t child = fork();
    if (child == 0) {
      execl(exe, exe, "fail", "other", (char *)0);
      _exit(90);
    }
    if (reap(child) != 7) return 90;
  }
  return 0;
}

static int foreign(int count) {
#ifndef __x86_64__
  (void)count;
  return 77;
#else
  /* Call close(-1) by its number of 32-bit programs (6). */
  for (int i = 0; i < count; i++) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(6L), "b"(-1L) : "memory", "r8", "r9", "r10", "r11");
    if (result == -ENOSYS) return 77;
    if ((int)result != -EBADF) return 90;
  }
  return 0;
#endif
}

static int eat(void) {
  for (;;) {
    char *more = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more == MAP_FAILED) return 90;
    memset(more, 1, 1 << 20);
  }
}

struct page {
  int fd;
  unsigned long at;
};
static void *bring(void *argument) {
  struct page *page = argument;
  struct uffdio_zeropage zero = {.range = {page->at, 4096}};
  char byte;
  if (read(0, &byte, 1) != 1) _exit(91);
  if (ioctl(page->fd, UFFDIO_ZEROPAGE, &zero) != 0) _exit(91);
  return 0;
}

static int blocked(void) {
  struct page page = {(int)syscall(SYS_userfaultfd, O_CLOEXEC), 0};
  struct uffdio_api api = {.api = UFFD_API};
  if (page.fd < 0 || ioctl(page.fd, UFFDIO_API, &api) != 0) {
    fprintf(stderr, "no userfaultfd: %s\n", strerror(errno));
    return 77;
  }
  char byte, *area = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  page.at = (unsigned long)area;
  struct uffdio_register range = {.range = {page.at, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (ioctl(page.fd, UFFDIO_REGISTER, &range) != 0) return 91;
  pthread_t id;
  if (pthread_create(&id, 0, bring, &page) != 0) return 91;
  /* When the kernel reads the page on behalf of another process, the wait for the page ignores signals. */
  struct iovec to = {&byte, 1}, from = {area, 1};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1) return 92;
  pthread_join(id, 0);
  return 0;
}

static int vforked(void) {
  char byte;
  pid_t child = vfork();
  if (child == 0) _exit(syscall(SYS_read, 0, &byte, 1) == 1 ? 0 : 91);
  return reap(child);
}

int main(int argc, char **argv) {
  char go[3];
  const char *mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "fail") == 0 && argc == 3) {
    fail_open(argv[2]);
    return 7;
  }
  if (strcmp(mode, "orphan") == 0) setsid();
  if (write(1, "ready 1\n", 8) != 8) return 97;
  if (strcmp(mode, "wait") == 0 || strcmp(mode, "orphan") == 0) {
    for (;;) {
      ssize_t n = read(0, go, 1);
      if (n == 0 || (n < 0 && errno != EINTR)) return 0;
    }
  }
  if (read(0, go, 2) != 2) return 97;
  if (strcmp(mode, "starts") == 0 && argc == 4) return starts(argv[2], argv[3]);
  if (strcmp(mode, "execs") == 0 && argc == 3) return execs(argv[0], atoi(argv[2]));
  if (strcmp(mode, "churn") == 0 && argc == 3) return churn(atoi(argv[2]));
  if (strcmp(mode, "foreign") == 0 && argc == 3) return foreign(atoi(argv[2]));
  if (strcmp(mode, "eat") == 0) return eat();
  if (strcmp(mode, "core") == 0 && argc == 3) {
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (chdir(argv[2]) != 0 || setrlimit(RLIMIT_CORE, &all) != 0) return 91;
    abort();
  }
  if (strcmp(mode, "blocked") == 0) return blocked();
  if (strcmp(mode, "vfork") == 0) return vforked();
  return 98;
}
