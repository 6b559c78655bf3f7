/* Causes events that the tracer must report; the arguments determine them exactly. Modes:
 *   failures DIR PORT   one failing call of each kind, and one of each state-changing call
 *   threads N M         N threads fail M opens each, path /rose-none/<tid>/<number>
 *   brief T C           T threads and C children, one after another, fail one open each
 *   same N              makes the same failing open N times, and then another one
 *   storm N M           N threads make the same failing open M times each; meanwhile another call fails
 *   exit CODE | abort | segv | die (SIGKILL) | wait (until stdin ends)
 *   serve               TCP (4 and 6) and UDP servers on loopback; prints the ports, echoes
 *   answer PORT         TCP and UDP server on all IPv4 addresses, echoes until stdin ends
 *   talk ADDRESS PORT PERIOD BURST PAUSE
 *                       sends a request to an `answer` server over TCP and UDP and waits for the answers; BURST times,
 *                       PERIOD ms apart. Then prints "late" and how many of the burst's answers over TCP took more than
 *                       a quarter of the period, and waits PAUSE ms. Repeats until stdin ends
 *   functions N         calls rose_victim_rare once and rose_victim_often N times, and cbrt of libm
 *   crowd CODE          starts 40 threads, then exits with all of them
 *   noise               gets EAGAIN from a non-blocking pipe, and from a receive that times out
 *   now-and-then        fails an open every 20 ms until stdin ends
 *   tree                starts a child and a thread, each of which waits for stdin's end and then fails one open
 *   churn DIR           forks, writes, connects and allocates as fast as it can, without an error, until it is killed;
 *                       prints "ready 1" when all of these have begun
 *   short DIR           in a small tmpfs at DIR: makes a short write, a write to a mapped page for which there is no
 * space,
 *                       and a short read; and reads that only look short, at the end of a file and from a socket
 *   orderly             fails an open every 20 ms; after SIGTERM continues for a while and ends with status 143
 * All modes except serve, answer, talk and wait first wait for "go" on stdin, until the tracer is ready. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPECT_FAIL(call) do { if ((call) != -1) { fprintf(stderr, "did not fail: %s\n", #call); exit(90); } } while (0)
#define EXPECT(call) do { if ((call) < 0) { fprintf(stderr, "%s: %s\n", #call, strerror(errno)); exit(91); } } while (0)

__attribute__((noinline)) int rose_victim_rare(int x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
__attribute__((noinline)) int rose_victim_often(int x) { __asm__ volatile("" : "+r"(x)); return x + 2; }

/* A uprobe cannot be put on this function's first instruction, because it has a lock prefix. */
int rose_victim_unprobed(void);
#ifdef __x86_64__
__asm__(".text\n.globl rose_victim_unprobed\n.type rose_victim_unprobed, @function\nrose_victim_unprobed:\n"
        "lock addl $0, -8(%rsp)\nxorl %eax, %eax\nret\n.size rose_victim_unprobed, . - rose_victim_unprobed\n");
#else
int rose_victim_unprobed(void) { return 0; }
#endif

static struct sockaddr_in v4(int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}
static struct sockaddr_in6 v6(int port) {
  struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  a.sin6_addr = in6addr_loopback;
  return a;
}

static void failures(const char *dir, int port) {
  char text[6000];
  int fd, fds[2], sub, ready;
  EXPECT(chdir(dir));
  mkdir("sub", 0755);
  EXPECT(sub = open("sub", O_RDONLY | O_DIRECTORY));
  EXPECT(fd = open("file", O_RDWR | O_CREAT, 0600)); /* SYS openat */
  EXPECT_FAIL(open("missing", O_RDONLY));
  EXPECT_FAIL(open("./sub//./odd", O_RDONLY));
  EXPECT_FAIL(openat(sub, "gone", O_RDONLY));
  EXPECT_FAIL(open("/rose-none/absolute", O_RDONLY));
#ifdef SYS_open
  EXPECT_FAIL(syscall(SYS_open, "old-open", O_RDONLY, 0));
#endif
  EXPECT_FAIL(open("", O_RDONLY));
  EXPECT_FAIL(ioctl(fd, TCGETS, text));
  EXPECT_FAIL(lseek(fd, -5, SEEK_SET));
  EXPECT_FAIL(rename("from-missing", "to-new"));
  EXPECT_FAIL(renameat(sub, "at-missing", AT_FDCWD, "at-new"));
  EXPECT_FAIL(link("link-missing", "link-new"));
  EXPECT_FAIL(symlink("some/target", "file"));
  EXPECT_FAIL(execl("no-such-program", "x", (char *)0));
  EXPECT_FAIL(mmap(0, 4096, PROT_READ, MAP_SHARED, sub, 0) == MAP_FAILED ? -1 : 0);
  EXPECT_FAIL(close(-1));
  EXPECT_FAIL(read(999, text, 1));

  EXPECT(ready = open("sub/doomed", O_RDONLY | O_CREAT, 0600));
  EXPECT(unlink("sub/doomed")); /* SYS unlink */
  EXPECT_FAIL(write(ready, "x", 1));
  close(ready);

  EXPECT(pipe(fds));
  EXPECT_FAIL(lseek(fds[0], 0, SEEK_SET));
  EXPECT(ready = epoll_create1(0));
  EXPECT_FAIL(read(ready, text, 1));
  close(ready);

  memset(text, 'p', 5000);
  memcpy(text, "head", 4);
  strcpy(text + 5000, "/tail");
  EXPECT_FAIL(open(text, O_RDONLY)); /* ENAMETOOLONG */

  /* A path that is longer than 4096 bytes only together with the folder. */
  memset(text, 'd', 200);
  text[200] = 0;
  for (int i = 0; i < 24; i++) {
    EXPECT(mkdir(text, 0755));
    EXPECT(chdir(text));
  }
  EXPECT_FAIL(open("deep-end", O_RDONLY));
  EXPECT(chdir(dir));

  struct sockaddr_in a = v4(port);
  struct sockaddr_in6 b = v6(port);
  struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "/rose-none/socket"};
  EXPECT(ready = socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_FAIL(connect(ready, (void *)&a, sizeof a));
  close(ready);
  EXPECT(ready = socket(AF_INET6, SOCK_STREAM, 0));
  EXPECT_FAIL(connect(ready, (void *)&b, sizeof b));
  close(ready);
  EXPECT(ready = socket(AF_UNIX, SOCK_STREAM, 0));
  EXPECT_FAIL(connect(ready, (void *)&u, sizeof u));
  close(ready);
  EXPECT(ready = socket(AF_INET, SOCK_DGRAM, 0));
  static char big[70000];
  a = v4(9);
  EXPECT_FAIL(sendto(ready, big, sizeof big, 0, (void *)&a, sizeof a));
  struct iovec iov = {big, sizeof big};
  a = v4(10);
  struct msghdr message = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &iov, .msg_iovlen = 1};
  EXPECT_FAIL(sendmsg(ready, &message, 0));
  a = v4(11);
  EXPECT(connect(ready, (void *)&a, sizeof a)); /* SYS connect */
  EXPECT_FAIL(send(ready, big, sizeof big, 0));  /* the peer is the one of connect() */
  close(ready);

  int listener, client;
  socklen_t length = sizeof a;
  a = v4(0);
  EXPECT(listener = socket(AF_INET, SOCK_STREAM, 0));
  EXPECT(bind(listener, (void *)&a, sizeof a));
  EXPECT(listen(listener, 4)); /* SYS listen */
  EXPECT(getsockname(listener, (void *)&a, &length));
  printf("listening %d\n", ntohs(a.sin_port));
  EXPECT(client = socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_FAIL(bind(client, (void *)&a, sizeof a));
  EXPECT(connect(client, (void *)&a, sizeof a)); /* SYS connect */
  length = sizeof a;
  EXPECT(getsockname(client, (void *)&a, &length));
  printf("client %d\n", ntohs(a.sin_port));
  EXPECT(ready = accept(listener, 0, 0)); /* SYS accept */
  struct rlimit old, none = {0, 0};
  getrlimit(RLIMIT_NOFILE, &old);
  none.rlim_max = old.rlim_max;
  setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_FAIL(accept(listener, 0, 0));
  setrlimit(RLIMIT_NOFILE, &old);
  shutdown(ready, SHUT_WR);
  EXPECT_FAIL(send(ready, "x", 1, MSG_NOSIGNAL)); /* EPIPE */

  EXPECT(ftruncate(fd, 10));
  EXPECT(fsync(fd));
  EXPECT(rename("file", "renamed"));
  EXPECT(symlink("some/where", "pointer"));
  EXPECT(mkdirat(sub, "made", 0755));
  EXPECT(unlinkat(sub, "made", AT_REMOVEDIR));
  EXPECT(open("renamed", O_RDONLY)); /* an event only with TracerOptions::reads */
  EXPECT(open("/etc/passwd", O_RDONLY)); /* no event */
  EXPECT(open("/proc/self/status", O_RDONLY)); /* no event */
  fflush(stdout);
}

struct job { int count; };
static void *fail_many(void *argument) {
  char path[64];
  int tid = (int)syscall(SYS_gettid);
  for (int i = 0; i < ((struct job *)argument)->count; i++) {
    snprintf(path, sizeof path, "/rose-none/%d/%d", tid, i);
    if (open(path, O_RDONLY) >= 0) exit(92);
  }
  return 0;
}

static void many(int threads, int count) {
  pthread_t ids[64];
  struct job job = {count};
  if (threads > 64) exit(93);
  for (int i = 0; i < threads; i++) pthread_create(&ids[i], 0, fail_many, &job);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
}

static void *storm_one(void *arg) {
  const struct job *job = arg;
  for (int i = 0; i < job->count; i++) open("/rose-none/same", O_RDONLY);
  return 0;
}

static void storm(int threads, int count) {
  pthread_t ids[64];
  struct job job = {count};
  if (threads > 64) exit(93);
  for (int i = 0; i < threads; i++) pthread_create(&ids[i], 0, storm_one, &job);
  usleep(50000);
  open("/rose-none/other", O_RDONLY);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
}

static void brief(int threads, int children) {
  pthread_t id;
  struct job job = {1};
  for (int i = 0; i < threads; i++) {
    if (pthread_create(&id, 0, fail_many, &job)) exit(94);
    pthread_join(id, 0);
  }
  for (int i = 0; i < children; i++) {
    pid_t child = fork();
    if (child == 0) {
      fail_many(&job);
      _exit(7);
    }
    waitpid(child, 0, 0);
  }
}

static void *wait_and_fail(void *name) {
  char c;
  while (read(0, &c, 1) > 0) {}
  open(name, O_RDONLY);
  return 0;
}

static void tree(void) {
  pthread_t id;
  pid_t child = fork();
  if (child == 0) {
    wait_and_fail("/rose-none/child");
    _exit(0);
  }
  pthread_create(&id, 0, wait_and_fail, "/rose-none/thread");
  printf("child %d\n", child);
  fflush(stdout);
  pthread_join(id, 0);
  waitpid(child, 0, 0);
}

static void serve(void) {
  struct pollfd fds[32];
  int count = 0;
  struct sockaddr_in a = v4(0);
  struct sockaddr_in6 b = v6(0);
  socklen_t length = sizeof a;
  fds[count++] = (struct pollfd){0, POLLIN, 0};
  int s = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(bind(s, (void *)&a, sizeof a));
  EXPECT(listen(s, 8));
  getsockname(s, (void *)&a, &length);
  printf("tcp4 %d\n", ntohs(a.sin_port));
  fds[count++] = (struct pollfd){s, POLLIN, 0};
  s = socket(AF_INET6, SOCK_STREAM, 0);
  length = sizeof b;
  EXPECT(bind(s, (void *)&b, sizeof b));
  EXPECT(listen(s, 8));
  getsockname(s, (void *)&b, &length);
  printf("tcp6 %d\n", ntohs(b.sin6_port));
  fds[count++] = (struct pollfd){s, POLLIN, 0};
  s = socket(AF_INET, SOCK_DGRAM, 0);
  /* UDP has no handshake, so rose recognises a service by a port that the kernel does not assign to clients. */
  for (int port = 20000 + getpid() % 10000;; port++) {
    a = v4(port);
    if (bind(s, (void *)&a, sizeof a) == 0) break;
    if (port > 31000) exit(89);
  }
  length = sizeof a;
  getsockname(s, (void *)&a, &length);
  printf("udp4 %d\n", ntohs(a.sin_port));
  fds[count++] = (struct pollfd){s, POLLIN, 0};
  fflush(stdout);
  for (;;) {
    char bytes[256];
    poll(fds, count, -1);
    if (fds[0].revents) return;
    for (int i = 1; i < 3; i++) {
      if ((fds[i].revents & POLLIN) && count < 32) fds[count++] = (struct pollfd){accept(fds[i].fd, 0, 0), POLLIN, 0};
    }
    if (fds[3].revents & POLLIN) recv(fds[3].fd, bytes, sizeof bytes, 0);
    for (int i = 4; i < count; i++) {
      if (fds[i].fd < 0 || !fds[i].revents) continue;
      if (recv(fds[i].fd, bytes, sizeof bytes, MSG_DONTWAIT) == 0) {
        close(fds[i].fd);
        fds[i].fd = -1;
      }
    }
  }
}

static void answer(int port) {
  struct pollfd fds[64];
  int count = 0, one = 1;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  fds[count++] = (struct pollfd){0, POLLIN, 0};
  for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
    int s = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    EXPECT(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
    EXPECT(bind(s, (void *)&a, sizeof a));
    if (type == SOCK_STREAM) EXPECT(listen(s, 64));
    fds[count++] = (struct pollfd){s, POLLIN, 0};
  }
  printf("ready 1\n");
  fflush(stdout);
  for (;;) {
    char bytes[256];
    poll(fds, count, -1);
    if (fds[0].revents) return;
    if (fds[1].revents & POLLIN && count < 64)
      fds[count++] = (struct pollfd){accept4(fds[1].fd, 0, 0, SOCK_CLOEXEC), POLLIN, 0};
    if (fds[2].revents & POLLIN) {
      struct sockaddr_in from;
      socklen_t length = sizeof from;
      ssize_t n = recvfrom(fds[2].fd, bytes, sizeof bytes, MSG_DONTWAIT, (void *)&from, &length);
      if (n > 0) sendto(fds[2].fd, bytes, n, MSG_DONTWAIT, (void *)&from, length);
    }
    for (int i = 3; i < count; i++) {
      if (fds[i].fd < 0 || !fds[i].revents) continue;
      ssize_t n = recv(fds[i].fd, bytes, sizeof bytes, MSG_DONTWAIT);
      if (n > 0) {
        send(fds[i].fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
      } else {
        close(fds[i].fd);
        fds[i].fd = -1;
      }
    }
  }
}

/* Returns false when stdin has ended. */
static int rest_for(int ms) {
  struct pollfd in = {0, POLLIN, 0};
  return poll(&in, 1, ms) == 0;
}

static void talk(const char *address, int port, int period, int burst, int pause_ms, int hard) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  int fds[2];
  EXPECT(inet_pton(AF_INET, address, &a.sin_addr) == 1 ? 0 : -1);
  for (int i = 0; i < 2; i++) {
    fds[i] = socket(AF_INET, (i == 0 ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
    EXPECT(connect(fds[i], (void *)&a, sizeof a));
  }
  if (hard) { /* closing it sends a reset */
    struct linger now = {1, 0};
    EXPECT(setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &now, sizeof now));
  }
  printf("connected 1\n");
  fflush(stdout);
  for (;;) {
    int late = 0;
    for (int n = 0; n < burst; n++) {
      for (int i = 0; i < 2; i++) {
        char byte = 'x';
        struct pollfd in = {fds[i], POLLIN, 0};
        struct timespec asked, answered;
        clock_gettime(CLOCK_MONOTONIC, &asked);
        send(fds[i], &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (i == 0) { /* wait at most one period, because the answer may be lost */
          poll(&in, 1, period);
          clock_gettime(CLOCK_MONOTONIC, &answered);
          late += (answered.tv_sec - asked.tv_sec) * 1000 + (answered.tv_nsec - asked.tv_nsec) / 1000000 >=
                  (period + 3) / 4;
        }
        recv(fds[i], &byte, 1, MSG_DONTWAIT);
      }
      if (!rest_for(period)) return;
    }
    if (!pause_ms) continue;
    printf("late %d\n", late);
    fflush(stdout);
    if (!rest_for(pause_ms)) return;
  }
}

static void functions(int often) {
  int x = rose_victim_rare(1);
  void *libm = dlopen("libm.so.6", RTLD_NOW);
  double (*cube_root)(double) = libm ? (double (*)(double))dlsym(libm, "cbrt") : 0;
  if (!cube_root) exit(95);
  for (int i = 0; i < often; i++) x += rose_victim_often(x);
  if (cube_root(27.0 + x * 0.0) < 2.9) exit(96);
}

static void *rest(void *unused) {
  for (;;) pause();
  return unused;
}

static void crowd(int code) {
  pthread_t id;
  for (int i = 0; i < 40; i++) pthread_create(&id, 0, rest, 0);
  exit(code);
}

static void noise(void) {
  char c;
  int fds[2], s[2];
  struct timeval limit = {0, 20000};
  EXPECT(pipe2(fds, O_NONBLOCK));
  for (int i = 0; i < 100; i++) EXPECT_FAIL(read(fds[0], &c, 1));
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
  EXPECT_FAIL(recv(s[0], &c, 1, MSG_DONTWAIT));
  EXPECT(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  EXPECT_FAIL(recv(s[0], &c, 1, 0)); /* EAGAIN because of a time limit is recorded */
}

static _Atomic int churning;
static const char *churn_dir;

static void *churn_forks(void *none) {
  for (;;) {
    int status;
    pid_t child = fork();
    if (child == 0) _exit(0);
    EXPECT(child);
    EXPECT(waitpid(child, &status, 0));
    churning |= 1;
  }
  return none;
}
static void *churn_writes(void *none) {
  static char bytes[1 << 20];
  char path[4096];
  int fd;
  snprintf(path, sizeof path, "%s/churned", churn_dir);
  EXPECT(fd = open(path, O_RDWR | O_CREAT, 0600));
  for (;;) {
    EXPECT(pwrite(fd, bytes, sizeof bytes, 0));
    EXPECT(ftruncate(fd, 0));
    churning |= 2;
  }
  return none;
}
static void *churn_accepts(void *listener) {
  for (;;) close(accept(*(int *)listener, 0, 0));
  return listener;
}
static void *churn_connects(void *none) {
  static int listener;
  struct sockaddr_in to = v4(0);
  socklen_t length = sizeof to;
  const struct linger hard = {1, 0};
  pthread_t other;
  EXPECT(listener = socket(AF_INET, SOCK_STREAM, 0));
  EXPECT(bind(listener, (struct sockaddr *)&to, sizeof to));
  EXPECT(listen(listener, 128));
  EXPECT(getsockname(listener, (struct sockaddr *)&to, &length));
  EXPECT(-pthread_create(&other, 0, churn_accepts, &listener));
  for (;;) {
    int fd;
    EXPECT(fd = socket(AF_INET, SOCK_STREAM, 0));
    EXPECT(connect(fd, (struct sockaddr *)&to, sizeof to));
    EXPECT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
    close(fd);
    churning |= 4;
  }
  return none;
}
static void *churn_memory(void *none) {
  const size_t size = 8 << 20;
  for (;;) {
    char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) exit(92);
    for (size_t i = 0; i < size; i += 4096) at[i] = 1;
    EXPECT(munmap(at, size));
    churning |= 8;
  }
  return none;
}
static void churn(const char *dir) {
  void *(*const parts[])(void *) = {churn_forks, churn_writes, churn_connects, churn_memory};
  churn_dir = dir;
  for (int i = 0; i < 4; i++) {
    pthread_t other;
    EXPECT(-pthread_create(&other, 0, parts[i], 0));
  }
  while (churning != 15) usleep(1000);
  printf("ready 1\n");
  fflush(stdout);
  for (;;) pause();
}

static sigjmp_buf out_of_page;
static void leave_page(int sig) { siglongjmp(out_of_page, sig); }
static void cut_short(const char *dir) {
  const size_t big = 1 << 20, page = 4096;
  char path[4096], *at, *bytes = calloc(1, big);
  int fd, pair[2];
  EXPECT(unshare(CLONE_NEWNS));
  EXPECT(mount("none", "/", 0, MS_REC | MS_PRIVATE, 0));
  EXPECT(mount("rose-test", dir, "tmpfs", 0, "size=64k"));
  snprintf(path, sizeof path, "%s/sparse", dir);
  EXPECT(fd = open(path, O_RDWR | O_CREAT, 0600));
  EXPECT(ftruncate(fd, big));
  at = mmap(0, big, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  snprintf(path, sizeof path, "%s/full", dir);
  EXPECT(fd = open(path, O_RDWR | O_CREAT, 0600));
  if (write(fd, bytes, big) >= (ssize_t)big) exit(93);
  signal(SIGBUS, leave_page);
  if (sigsetjmp(out_of_page, 1) == 0) {
    at[0] = 1;
    exit(94);
  }
  at = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(mprotect(at + page, page, PROT_NONE));
  if (pread(fd, at, 2 * page, 0) != (ssize_t)page) exit(95);
  if (pread(fd, bytes, big, 0) >= (ssize_t)big) exit(93); /* up to the end */
  EXPECT(lseek(fd, 0, SEEK_END));
  EXPECT(read(fd, bytes, big));
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  for (int i = 0; i < 3; i++) {
    EXPECT(write(pair[0], "x", 1));
    EXPECT(read(pair[1], bytes, big));
  }
  EXPECT(fd = open("/proc/self/status", O_RDONLY));
  EXPECT(read(fd, bytes, big));
  EXPECT(fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY));
  EXPECT(read(fd, bytes, big));
}

static volatile sig_atomic_t asked;
static void be_asked(int sig) { asked = sig; }
static void orderly(void) {
  int left = 15;
  signal(SIGTERM, be_asked);
  printf("ready 1\n");
  fflush(stdout);
  while (!asked || left-- > 0) {
    usleep(20000);
    open("/rose-none/orderly", O_RDONLY);
  }
  exit(143);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  char go[3];
  if (strcmp(mode, "serve") == 0) return serve(), 0;
  if (strcmp(mode, "answer") == 0) return answer(atoi(argv[2])), 0;
  if (strcmp(mode, "talk") == 0)
    return talk(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]), atoi(argv[6]), argc > 7), 0;
  if (strcmp(mode, "tree") == 0) return tree(), 0;
  if (strcmp(mode, "wait") == 0) {
    printf("ready 1\n");
    fflush(stdout);
    while (read(0, go, 1) > 0) {}
    return 0;
  }
  if (read(0, go, 2) != 2) return 97;
  if (strcmp(mode, "failures") == 0 && argc == 4) failures(argv[2], atoi(argv[3]));
  else if (strcmp(mode, "threads") == 0 && argc == 4) many(atoi(argv[2]), atoi(argv[3]));
  else if (strcmp(mode, "storm") == 0 && argc == 4) storm(atoi(argv[2]), atoi(argv[3]));
  else if (strcmp(mode, "brief") == 0 && argc == 4) brief(atoi(argv[2]), atoi(argv[3]));
  else if (strcmp(mode, "same") == 0 && argc == 3) {
    for (int i = 0; i < atoi(argv[2]); i++) open("/rose-none/same", O_RDONLY);
    open("/rose-none/other", O_RDONLY);
  } else if (strcmp(mode, "exit") == 0 && argc == 3) return atoi(argv[2]);
  else if (strcmp(mode, "abort") == 0) abort();
  else if (strcmp(mode, "segv") == 0) raise(SIGSEGV);
  else if (strcmp(mode, "die") == 0) kill(getpid(), SIGKILL);
  else if (strcmp(mode, "functions") == 0 && argc == 3) functions(atoi(argv[2]));
  else if (strcmp(mode, "crowd") == 0 && argc == 3) crowd(atoi(argv[2]));
  else if (strcmp(mode, "noise") == 0) noise();
  else if (strcmp(mode, "churn") == 0 && argc == 3) churn(argv[2]);
  else if (strcmp(mode, "short") == 0 && argc == 3) cut_short(argv[2]);
  else if (strcmp(mode, "orderly") == 0) orderly();
  else if (strcmp(mode, "now-and-then") == 0) {
    while (rest_for(20)) EXPECT_FAIL(open("/rose-none/now", O_RDONLY));
  }
  else return 98;
  return 0;
}
