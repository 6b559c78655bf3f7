/* Makes calls that fail or change something, on every kind of path, descriptor and address. Before each call it prints
 * a line with the event that a tracer must report (empty: null; errno "?": any):
 *   expect \t TYPE \t syscall \t errno \t path \t path2 \t peer \t flags \t marks
 * The test compares these lines with the trace, which must contain no other events.
 *   paths DIR     paths: relative, with a folder's descriptor, removed, mounted, in chroots, of all lengths
 *   sockets DIR   sockets of all families
 *   uring DIR     operations of io_uring: done inline, by a worker, or by a polling thread
 * "go" on stdin starts. Exit 77: a feature is missing, named on stderr. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void expect(const char *type, const char *call, const char *error, const char *path, const char *path2,
                   const char *peer, const char *flags, const char *marks) {
  static char line[16384];
  int n = snprintf(line, sizeof line, "expect\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", type, call, error, path, path2, peer,
                   flags, marks);
  for (int at = 0; at < n;) {
    ssize_t wrote = write(1, line + at, (size_t)(n - at));
    if (wrote <= 0) _exit(89);
    at += (int)wrote;
  }
}

static void did_fail(long result, const char *what) {
  if (result == -1) return;
  fprintf(stderr, "did not fail: %s\n", what);
  _exit(90);
}
static long must(long result, const char *what) {
  if (result >= 0) return result;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  _exit(91);
}
#define MUST(call) must((long)(call), #call)
#define FAILS(name, error, path, path2, peer, marks, call) \
  do { expect("scf", name, error, path, path2, peer, "", marks); did_fail((long)(call), #call); } while (0)
#define CHANGES(name, path, path2, peer, flags, marks, call) \
  (expect("sys", name, "", path, path2, peer, flags, marks), MUST(call))

static const char *in(const char *folder, const char *name) {
  static char texts[8][8192];
  static int next;
  char *text = texts[next++ % 8];
  snprintf(text, sizeof texts[0], "%s/%s", folder, name);
  return text;
}

static long do_openat2(int at, const char *path, unsigned long long flags, unsigned long long resolve) {
  struct open_how how = {.flags = flags, .mode = (flags & O_CREAT) ? 0600 : 0, .resolve = resolve};
  return syscall(SYS_openat2, at, path, &how, sizeof how);
}

/* Runs the code in a child process, so that its changes (root, mounts) end with the child. */
#define IN_CHILD(code)                                          \
  do {                                                          \
    pid_t child_ = (pid_t)MUST(fork());                         \
    int status_;                                                \
    if (child_ == 0) {                                          \
      code;                                                     \
      _exit(0);                                                 \
    }                                                           \
    MUST(waitpid(child_, &status_, 0));                         \
    if (status_ != 0) _exit(WIFEXITED(status_) ? WEXITSTATUS(status_) : 92); \
  } while (0)

static int paths(const char *dir) {
  static char text[8192], want[4096];
  struct stat st;
  int sub, file, fd;
  MUST(chdir(dir));
  CHANGES("mkdir", in(dir, "sub"), "", "", "", "", mkdir("sub", 0755));
  CHANGES("mkdir", in(dir, "other"), "", "", "", "", mkdir("other", 0755));
  sub = (int)MUST(open("sub", O_RDONLY | O_DIRECTORY));
  CHANGES("openat", in(dir, "file"), "", "", "O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC", "",
          file = open("file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  /* opening with O_TRUNC, but without O_CREAT, is a change, too, with each call that opens */
#ifdef SYS_open
  CHANGES("open", in(dir, "file"), "", "", "O_WRONLY|O_TRUNC", "",
          fd = (int)syscall(SYS_open, "file", O_WRONLY | O_TRUNC));
  close(fd);
#endif
  CHANGES("openat2", in(dir, "sub/how"), "", "", "O_WRONLY|O_CREAT|O_DSYNC", "",
          fd = (int)do_openat2(sub, "how", O_WRONLY | O_CREAT | O_DSYNC, 0));
  close(fd);
#ifdef SYS_creat
  CHANGES("creat", in(dir, "created"), "", "", "", "", fd = (int)syscall(SYS_creat, "created", 0600));
  close(fd);
#endif
  close((int)MUST(open("file", O_RDONLY))); /* no event */

  /* every call that takes the descriptor of a folder */
  FAILS("mkdirat", "EEXIST", in(dir, "sub/how"), "", "", "", mkdirat(sub, "how", 0755));
  FAILS("mknodat", "EEXIST", in(dir, "sub/how"), "", "", "", mknodat(sub, "how", S_IFREG, 0));
  FAILS("unlinkat", "ENOENT", in(dir, "sub/a"), "", "", "", unlinkat(sub, "a", 0));
  FAILS("renameat2", "EEXIST", in(dir, "sub/how"), in(dir, "file"), "", "",
        syscall(SYS_renameat2, sub, "how", AT_FDCWD, "file", 1 /* RENAME_NOREPLACE */));
  FAILS("linkat", "ENOENT", in(dir, "sub/b"), in(dir, "c"), "", "", linkat(sub, "b", AT_FDCWD, "c", 0));
  FAILS("symlinkat", "EEXIST", in(dir, "sub/how"), "to/there", "", "", symlinkat("to/there", sub, "how"));
  FAILS("readlinkat", "EINVAL", in(dir, "sub/how"), "", "", "", readlinkat(sub, "how", text, sizeof text));
  FAILS("fchmodat", "ENOENT", in(dir, "sub/d"), "", "", "", syscall(SYS_fchmodat, sub, "d", 0600));
  FAILS("fchownat", "ENOENT", in(dir, "sub/e"), "", "", "", fchownat(sub, "e", 0, 0, 0));
  FAILS("utimensat", "ENOENT", in(dir, "sub/f"), "", "", "", utimensat(sub, "f", 0, 0));
  FAILS("faccessat", "ENOENT", in(dir, "sub/g"), "", "", "", syscall(SYS_faccessat, sub, "g", 0));
  FAILS("faccessat2", "ENOENT", in(dir, "sub/h"), "", "", "", syscall(SYS_faccessat2, sub, "h", 0, AT_EACCESS));
  FAILS("newfstatat", "ENOENT", in(dir, "sub/i"), "", "", "", syscall(SYS_newfstatat, sub, "i", &st, 0));
  FAILS("statx", "ENOENT", in(dir, "sub/j"), "", "", "", syscall(SYS_statx, sub, "j", 0, 0x7ff, text));
  FAILS("openat2", "EXDEV", in(dir, "file"), "", "", "", do_openat2(sub, "../file", O_RDONLY, RESOLVE_BENEATH));
  FAILS("execveat", "ENOENT", in(dir, "sub/k"), "", "", "", syscall(SYS_execveat, sub, "k", 0, 0, 0));
  FAILS("openat", "ENOTDIR", in(dir, "file/x"), "", "", "", openat(file, "x", O_RDONLY));
  FAILS("openat", "EBADF", "x", "", "", "", openat(999, "x", O_RDONLY));
  FAILS("openat", "EFAULT", "", "", "", "", syscall(SYS_openat, AT_FDCWD, (char *)1, O_RDONLY));
  FAILS("openat", "ENOENT", in(dir, "sub/\xff\xfe\xe9"), "", "", "", openat(sub, "\xff\xfe\xe9", O_RDONLY));

  /* calls with two paths that succeed */
  CHANGES("renameat2", in(dir, "sub/how"), in(dir, "other/renamed"), "", "", "",
          syscall(SYS_renameat2, sub, "how", AT_FDCWD, "other/renamed", 0));
  CHANGES("linkat", in(dir, "file"), in(dir, "sub/second"), "", "", "", linkat(AT_FDCWD, "file", sub, "second", 0));
  CHANGES("symlinkat", in(dir, "sub/pointer"), "anything goes", "", "", "", symlinkat("anything goes", sub, "pointer"));

  /* a renamed folder is reported by its new path */
  CHANGES("rename", in(dir, "sub"), in(dir, "moved"), "", "", "", rename("sub", "moved"));
  FAILS("openat", "ENOENT", in(dir, "moved/l"), "", "", "", openat(sub, "l", O_RDONLY));
  MUST(chdir("other"));
  FAILS("openat", "ENOENT", in(dir, "m"), "", "", "", open("../m", O_RDONLY));
  MUST(chdir(".."));

  /* removed: the current folder, a file, a file in memory */
  CHANGES("mkdir", in(dir, "gone"), "", "", "", "", mkdir("gone", 0755));
  MUST(chdir("gone"));
  CHANGES("rmdir", in(dir, "gone"), "", "", "", "", rmdir(in(dir, "gone")));
  FAILS("openat", "ENOENT", in(dir, "gone/n"), "", "", "unlinked", open("n", O_RDONLY));
  MUST(chdir(dir));
  CHANGES("openat", in(dir, "doomed"), "", "", "O_RDONLY|O_CREAT", "", fd = open("doomed", O_RDONLY | O_CREAT, 0600));
  CHANGES("unlink", in(dir, "doomed"), "", "", "", "", unlink("doomed"));
  FAILS("write", "EBADF", in(dir, "doomed"), "", "", "unlinked", write(fd, "x", 1));
  CHANGES("fsync", in(dir, "doomed"), "", "", "", "unlinked", fsync(fd));
  close(fd);
  fd = (int)MUST(memfd_create("rose-test", 0));
  FAILS("lseek", "EINVAL", "/memfd:rose-test", "", "", "unlinked", lseek(fd, -1, SEEK_SET));
  close(fd);

  /* a path has at most 4,095 bytes; of a longer one, the last 4,095 bytes are reported */
  memset(text, 'x', sizeof text);
  for (int i = 0; i < 4095; i += 100) text[i] = '/';
  text[4095] = 0;
  FAILS("openat", "ENOENT", text, "", "", "", open(text, O_RDONLY));
  memset(text, 'y', 6000);
  text[0] = '/';
  memcpy(text + 5990, "/the-end", 9);
  FAILS("openat", "ENAMETOOLONG", text + strlen(text) - 4095, "", "", "truncated", open(text, O_RDONLY));
  /* a relative path that is too long only together with the folder */
  memset(want, 'z', 4000);
  want[4000] = 0;
  for (int i = 200; i < 4000; i += 200) want[i] = '/';
  snprintf(text, sizeof text, "%s/%s", dir, want);
  FAILS("openat", "ENOENT", strlen(text) > 4095 ? text + strlen(text) - 4095 : text, "", "",
        strlen(text) > 4095 ? "truncated" : "", open(want, O_RDONLY));

  /* roots and mounts: paths are reported as the process sees them */
  CHANGES("mkdir", in(dir, "jail"), "", "", "", "", mkdir("jail", 0755));
  CHANGES("mkdir", in(dir, "mnt"), "", "", "", "", mkdir("mnt", 0755));
  IN_CHILD({
    MUST(chroot("jail"));
    FAILS("openat", "ENOENT", in(dir, "o"), "", "", "", open("o", O_RDONLY)); /* still outside the root */
    MUST(chdir("/"));
    FAILS("openat", "ENOENT", "/p", "", "", "", open("p", O_RDONLY));
    CHANGES("mkdir", "/room", "", "", "", "", mkdir("room", 0755));
    MUST(chdir("room"));
    FAILS("openat", "ENOENT", "/room/q", "", "", "", open("q", O_RDONLY));
  });
  IN_CHILD({
    MUST(unshare(CLONE_NEWNS));
    MUST(mount(0, "/", 0, MS_REC | MS_PRIVATE, 0));
    MUST(mount("none", "mnt", "tmpfs", 0, 0));
    CHANGES("mkdir", in(dir, "mnt/deep"), "", "", "", "", mkdir("mnt/deep", 0755));
    CHANGES("mkdir", in(dir, "mnt/old"), "", "", "", "", mkdir("mnt/old", 0755));
    MUST(chdir("mnt/deep"));
    FAILS("openat", "ENOENT", in(dir, "mnt/deep/r"), "", "", "", open("r", O_RDONLY));
    MUST(chdir(dir));
    FAILS("mount", "ENOENT", in(dir, "jail"), "mnt/none", "", "", mount("mnt/none", "jail", 0, MS_BIND, 0));
    MUST(mount("mnt/deep", "jail", 0, MS_BIND, 0));
    MUST(chdir("jail"));
    FAILS("openat", "ENOENT", in(dir, "jail/s"), "", "", "", open("s", O_RDONLY));
    MUST(chdir(dir));
    FAILS("pivot_root", "?", in(dir, "other"), in(dir, "jail"), "", "", syscall(SYS_pivot_root, "other", "jail"));
    MUST(syscall(SYS_pivot_root, "mnt", "mnt/old"));
    MUST(chdir("/"));
    FAILS("openat", "ENOENT", "/t", "", "", "", open("t", O_RDONLY));
    FAILS("openat", "ENOENT", "/deep/u", "", "", "", open("deep/u", O_RDONLY));
  });
  return 0;
}

static struct sockaddr_in v4(int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

static const char *peer4(int port) {
  static char texts[8][64];
  static int next;
  char *text = texts[next++ % 8];
  snprintf(text, sizeof texts[0], "127.0.0.1:%d", port);
  return text;
}

static int port_of(int fd) {
  struct sockaddr_in6 a;
  socklen_t length = sizeof a;
  MUST(getsockname(fd, (void *)&a, &length));
  return ntohs(a.sin6_port); /* at the same place in both families */
}

static int unix_address(struct sockaddr_un *a, const char *name) {
  memset(a, 0, sizeof *a);
  a->sun_family = AF_UNIX;
  if (name[0] == '@') {
    memcpy(a->sun_path + 1, name + 1, strlen(name) - 1);
    return (int)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
  }
  strncpy(a->sun_path, name, sizeof a->sun_path - 1);
  return (int)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
}

static int sockets(const char *dir) {
  static char big[70000];
  static char name[128], peer[160];
  struct sockaddr_in a = v4(0);
  struct sockaddr_in6 b = {.sin6_family = AF_INET6};
  struct sockaddr_un u;
  int listener, client, fd, length, port, termios[64];
  b.sin6_addr = in6addr_loopback;

  /* TCP over IPv4; a non-blocking connect returns before the connection exists */
  listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
  MUST(bind(listener, (void *)&a, sizeof a));
  port = port_of(listener);
  CHANGES("listen", "", "", peer4(port), "", "", listen(listener, 4));
  client = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  a = v4(port);
  expect("sys", "connect", "", "", "", peer4(port), "", "result -115");
  did_fail(connect(client, (void *)&a, sizeof a), "connect");
  if (errno != EINPROGRESS) return 91;
  CHANGES("accept4", "", "", peer4(port_of(client)), "", "", fd = accept4(listener, 0, 0, SOCK_CLOEXEC));
  FAILS("ioctl", "?", "", "", peer4(port_of(client)), "", ioctl(fd, TCGETS, termios));
  close(fd);
  close(client);
  /* a refused connection: the failure is reported for the call that waits for the result */
  client = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
  a = v4(1);
  FAILS("connect", "ECONNREFUSED", "", "", peer4(1), "", connect(client, (void *)&a, sizeof a));
  close(client);

  /* TCP over IPv6 */
  fd = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0));
  MUST(bind(fd, (void *)&b, sizeof b));
  port = port_of(fd);
  snprintf(peer, sizeof peer, "[::1]:%d", port);
  CHANGES("listen", "", "", peer, "", "", listen(fd, 4));
  client = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0));
  b.sin6_port = htons((unsigned short)port);
  CHANGES("connect", "", "", peer, "", "", connect(client, (void *)&b, sizeof b));
  snprintf(peer, sizeof peer, "[::1]:%d", port_of(client));
  CHANGES("accept", "", "", peer, "", "", accept(fd, 0, 0));
  /* UDP */
  fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
  a = v4(9);
  FAILS("sendto", "EMSGSIZE", "", "", peer4(9), "", sendto(fd, big, sizeof big, 0, (void *)&a, sizeof a));
  struct iovec iov = {big, sizeof big};
  struct msghdr message = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &iov, .msg_iovlen = 1};
  FAILS("sendmsg", "EMSGSIZE", "", "", peer4(9), "", sendmsg(fd, &message, 0));
  struct mmsghdr many = {.msg_hdr = message};
  FAILS("sendmmsg", "EMSGSIZE", "", "", peer4(9), "", sendmmsg(fd, &many, 1, 0));
  fd = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
  b.sin6_port = htons(12);
  FAILS("sendto", "EMSGSIZE", "", "", "[::1]:12", "", sendto(fd, big, sizeof big, 0, (void *)&b, sizeof b));
  /* an IPv4 address in an IPv6 socket is reported as IPv4 */
  MUST(inet_pton(AF_INET6, "::ffff:127.0.0.1", &b.sin6_addr));
  FAILS("sendto", "EMSGSIZE", "", "", peer4(12), "", sendto(fd, big, sizeof big, 0, (void *)&b, sizeof b));

  /* a Unix socket with a path; with an abstract name (shown with '@'); with a padded name, because the padding belongs
   * to the name; without a name */
  for (int abstract = 0; abstract < 3; abstract++) {
    if (abstract == 1)
      snprintf(name, sizeof name, "@rose-places-%d", getpid());
    else
      snprintf(name, sizeof name, abstract ? "@%s" : "%s/s", dir);
    snprintf(peer, sizeof peer, "unix:%s", name);
    length = unix_address(&u, name);
    if (abstract == 2) length = sizeof u;
    client = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    FAILS("connect", abstract ? "ECONNREFUSED" : "ENOENT", "", "", peer, "",
          connect(client, (void *)&u, (socklen_t)length));
    fd = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
    MUST(bind(fd, (void *)&u, (socklen_t)length));
    FAILS("bind", "?", "", "", peer, "", bind(fd, (void *)&u, (socklen_t)length));
    CHANGES("listen", "", "", peer, "", "", listen(fd, 4));
    CHANGES("connect", "", "", peer, "", "", connect(client, (void *)&u, (socklen_t)length));
    CHANGES("accept", "", "", peer, "", "", fd = accept(fd, 0, 0));
    FAILS("ioctl", "?", "", "", peer, "", ioctl(fd, TCGETS, termios));
    FAILS("ioctl", "?", "", "", peer, "", ioctl(client, TCGETS, termios));
  }
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  FAILS("ioctl", "?", "", "", "", "", ioctl(pair[0], TCGETS, termios));

  /* netlink: the peer is a part of the kernel */
  fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC));
  FAILS("ioctl", "?", "", "", "netlink:16", "", ioctl(fd, TCGETS, termios));
  return 0;
}

static int turned_fd, turned_to;
static void turn(int signal) {
  (void)signal;
  dup2(turned_to, turned_fd);
}
static void nothing(int signal) { (void)signal; }

static void alarm_soon(void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  struct itimerval soon = {{0, 0}, {0, 50000}};
  MUST(sigaction(SIGALRM, &action, 0));
  MUST(setitimer(ITIMER_REAL, &soon, 0));
}

static int restarts(void) {
  char c;
  int fds[2];
  MUST(pipe(fds));
  turned_to = (int)MUST(epoll_create1(0));
  turned_fd = fds[0];
  /* The read is interrupted, restarted by the kernel, and fails only then. It must be reported once. */
  expect("scf", "read", "EINVAL", "anon_inode:[eventpoll]", "", "", "", "");
  alarm_soon(turn, SA_RESTART);
  did_fail(read(turned_fd, &c, 1), "read");
  /* Interrupted and not restarted: the program sees this failure, so it must be reported. */
  MUST(pipe(fds));
  alarm_soon(nothing, 0);
  expect("scf", "read", "EINTR", "*", "", "", "", "");
  did_fail(read(fds[0], &c, 1), "read");
  /* A call that is interrupted, restarted, and successful: nothing is recorded. */
  struct timespec wait = {0, 120000000};
  alarm_soon(nothing, SA_RESTART);
  pid_t child = (pid_t)MUST(fork());
  if (child == 0) {
    nanosleep(&wait, 0);
    _exit(0);
  }
  MUST(waitpid(child, 0, 0));
  return 0;
}

struct ring {
  int fd;
  struct io_uring_params params;
  char *sq, *cq;
  struct io_uring_sqe *sqe;
  unsigned tail;
};

static int ring_open(struct ring *r, unsigned flags) {
  memset(r, 0, sizeof *r);
  r->params.flags = flags;
  r->params.sq_thread_idle = 2000;
  r->fd = (int)syscall(SYS_io_uring_setup, 8, &r->params);
  if (r->fd < 0) return -1;
  struct io_uring_params *p = &r->params;
  r->sq = mmap(0, p->sq_off.array + 4 * p->sq_entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
               IORING_OFF_SQ_RING);
  r->cq = mmap(0, p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_CQ_RING);
  r->sqe = mmap(0, p->sq_entries * sizeof *r->sqe, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
                IORING_OFF_SQES);
  return r->sq == MAP_FAILED || r->cq == MAP_FAILED || (void *)r->sqe == MAP_FAILED ? -1 : 0;
}

/* Submits the operation, waits for it, and returns its result. */
static int ring_do(struct ring *r, struct io_uring_sqe sqe) {
  unsigned at = r->tail & (r->params.sq_entries - 1);
  unsigned *cq_tail = (unsigned *)(r->cq + r->params.cq_off.tail), seen = r->tail;
  r->sqe[at] = sqe;
  ((unsigned *)(r->sq + r->params.sq_off.array))[at] = at;
  __atomic_store_n((unsigned *)(r->sq + r->params.sq_off.tail), ++r->tail, __ATOMIC_RELEASE);
  if (r->params.flags & IORING_SETUP_SQPOLL) {
    for (int i = 0; i < 10000 && __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) == seen; i++) {
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      if (__atomic_load_n((unsigned *)(r->sq + r->params.sq_off.flags), __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP)
        MUST(syscall(SYS_io_uring_enter, r->fd, 1, 0, IORING_ENTER_SQ_WAKEUP, 0, 0));
      usleep(1000);
    }
    if (__atomic_load_n(cq_tail, __ATOMIC_ACQUIRE) == seen) _exit(93);
  } else {
    MUST(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0));
  }
  struct io_uring_cqe *cqes = (struct io_uring_cqe *)(r->cq + r->params.cq_off.cqes);
  int result = cqes[seen & (r->params.cq_entries - 1)].res;
  __atomic_store_n((unsigned *)(r->cq + r->params.cq_off.head), seen + 1, __ATOMIC_RELEASE);
  return result;
}

static int uring(const char *dir) {
  static char buffer[64];
  struct ring ring;
  struct sockaddr_in a = v4(1);
  int folder = (int)MUST(open(dir, O_RDONLY | O_DIRECTORY));
  for (int polled = 0; polled < 2; polled++) {
    if (ring_open(&ring, polled ? IORING_SETUP_SQPOLL : 0) < 0) {
      fprintf(stderr, "no io_uring%s here: %s\n", polled ? " with a polling thread" : "", strerror(errno));
      return 77;
    }
    for (int async = 0; async < 2; async++) {
      struct io_uring_sqe sqe = {.opcode = IORING_OP_READ, .fd = folder, .len = sizeof buffer,
                                 .flags = async ? IOSQE_ASYNC : 0, .addr = (unsigned long)buffer};
      expect("scf", "io_uring_enter", "EISDIR", dir, "", "", "", "op READ");
      if (ring_do(&ring, sqe) != -EISDIR) return 94;
      struct io_uring_sqe to = {.opcode = IORING_OP_FSYNC, .fd = 999, .flags = async ? IOSQE_ASYNC : 0};
      expect("scf", "io_uring_enter", "EBADF", "", "", "", "", "op FSYNC");
      if (ring_do(&ring, to) != -EBADF) return 95;
      int tcp = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
      struct io_uring_sqe reach = {.opcode = IORING_OP_CONNECT, .fd = tcp, .addr = (unsigned long)&a, .off = sizeof a,
                                   .flags = async ? IOSQE_ASYNC : 0};
      expect("scf", "io_uring_enter", "ECONNREFUSED", "", "", "127.0.0.1:1", "", "op CONNECT");
      if (ring_do(&ring, reach) != -ECONNREFUSED) return 96;
      close(tcp);
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  char go[3];
  const char *mode = argc > 1 ? argv[1] : "";
  umask(022);
  if (write(1, "ready 1\n", 8) != 8) return 97;
  if (read(0, go, 2) != 2) return 97;
  if (strcmp(mode, "paths") == 0 && argc == 3) return paths(argv[2]);
  if (strcmp(mode, "sockets") == 0 && argc == 3) return sockets(argv[2]);
  if (strcmp(mode, "restarts") == 0) return restarts();
  if (strcmp(mode, "uring") == 0 && argc == 3) return uring(argv[2]);
  return 98;
}
