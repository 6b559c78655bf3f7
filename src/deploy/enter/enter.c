/* The entry point of the containers that rose starts. It connects to rose through a socket, takes over the node's log
 * files, installs its filter, waits until rose is ready, and executes the image's own command. It runs inside arbitrary
 * images, so it uses no library and no memory except its own and the page that rose passes to it. */
#include "deploy/enter/enter.h"

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/time_types.h>
#include <linux/wait.h>
#include <stddef.h>

/* Defined here, because the C library's headers would add inline code. */
#define AF_UNIX_ 1
#define SOCK_SEQPACKET_CLOEXEC 02000005
#define SOL_SOCKET_ 1
#define SCM_RIGHTS_ 1
#define MSG_DONTWAIT_ 0x40
#define MSG_CMSG_CLOEXEC_ 0x40000000
#define X_OK_ 1

struct address {
  unsigned short family;
  char path[108];
};
struct vector {
  void *base;
  unsigned long length;
};
struct message {
  void *name;
  unsigned name_length;
  struct vector *vectors;
  unsigned long vector_count;
  void *control;
  unsigned long control_length;
  unsigned flags;
};
struct control {
  unsigned long length;
  int level;
  int type;
  int descriptors[ROSE_ENTER_DESCRIPTORS];
};

#ifdef __aarch64__
static inline long call6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;

  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#define RELAX() __asm__ volatile("yield" ::: "memory")
/* arm64 has only the newer forms of these calls. */
#define PAUSE() call6(__NR_ppoll, 0, 0, 0, 0, 0, 0)
#define DUP_TO(from, to) call6(__NR_dup3, from, to, 0, 0, 0, 0)
#else
static inline long call6(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;

  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#define RELAX() __builtin_ia32_pause()
#define PAUSE() call6(__NR_pause, 0, 0, 0, 0, 0, 0)
#define DUP_TO(from, to) call6(__NR_dup2, from, to, 0, 0, 0, 0)
#endif
#define CALL(number, a, b, c) call6(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

#ifdef __aarch64__
/* The compiler calls it to clear structures. */
__attribute__((used)) void *memset(void *to, int value, unsigned long size) {
  unsigned long i;

  for (i = 0; i < size; i++) ((volatile char *)to)[i] = (char)value;
  return to;
}
#endif

static unsigned long length_of(const char *text) {
  unsigned long n = 0;

  while (text[n]) n++;
  return n;
}

static _Noreturn void leave(int status) {
  CALL(__NR_exit_group, status, 0, 0);
  /* If the filter reports exit_group to rose, and rose does not answer any more, the call fails. Then this instruction
   * ends the process. */
  __builtin_trap();
}

/* For errors before rose can be informed. The engine prints this message. */
static _Noreturn void give_up(const char *why) {
  static const char before[] = "rose: error: cannot meet rose in the container: ";

  CALL(__NR_write, 2, before, sizeof(before) - 1);
  CALL(__NR_write, 2, why, length_of(why));
  CALL(__NR_write, 2, "\n", 1);
  leave(126);
}

static _Noreturn void fail(struct rose_enter_page *page, int stage, long error) {
  page->stage = stage;
  __atomic_store_n(&page->error, (int)-error, __ATOMIC_RELEASE);
  leave(127);
}

static void *memory(unsigned long size, int fd) {
  const long at =
      call6(__NR_mmap, 0, (long)size, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

  return at < 0 && at > -4096 ? NULL : (void *)at;
}

static int meet(int socket, int *descriptors) {
  struct address address = {.family = AF_UNIX_, .path = ROSE_ENTER_FOLDER "/" ROSE_ENTER_SOCKET};
  unsigned size = 0;
  struct vector vector = {&size, sizeof(size)};
  struct control control;
  struct message message = {
      .vectors = &vector, .vector_count = 1, .control = &control, .control_length = sizeof(control)};
  long got;
  int i;

  if (CALL(__NR_connect, socket, &address, sizeof(address)) < 0) give_up("nobody is at its socket");
  do got = CALL(__NR_recvmsg, socket, &message, MSG_CMSG_CLOEXEC_);
  while (got == -EINTR);
  if (got != sizeof(size) || message.control_length < sizeof(control) || control.level != SOL_SOCKET_ ||
      control.type != SCM_RIGHTS_)
    give_up("it sent something else");
  for (i = 0; i < ROSE_ENTER_DESCRIPTORS; i++) descriptors[i] = control.descriptors[i];
  return (int)size;
}

static char **strings(char *at, unsigned count, char **into) {
  unsigned i;

  for (i = 0; i < count; i++) {
    *into++ = at;
    at += length_of(at) + 1;
  }
  *into = NULL;
  return into;
}

static int same_text(const char *a, const char *b) {
  while (*a == *b && *a) {
    a++;
    b++;
  }
  return *a == *b;
}

/* True if both set the same variable. */
static int same_name(const char *a, const char *b) {
  while (*a == *b && *a && *a != '=') {
    a++;
    b++;
  }
  return *a == '=' && *b == '=';
}

static char **merge(char **own, char **further, unsigned count) {
  unsigned long total = 0, n = 0, i, k;
  char **all;

  while (own[total]) total++;
  all = memory((total + count + 1) * sizeof(char *), -1);
  if (!all) give_up("no memory");
  for (i = 0; i < total; i++) {
    for (k = 0; k < count && !same_name(own[i], further[k]); k++);
    if (k == count) all[n++] = own[i];
  }
  for (k = 0; k < count; k++) all[n++] = further[k];
  all[n] = NULL;
  return all;
}

static long executable(const char *path) {
  struct statx info;
  long result = call6(__NR_statx, AT_FDCWD, (long)path, 0, STATX_TYPE, (long)&info, 0);

  if (result < 0) return result;
  if ((info.stx_mode & S_IFMT) != S_IFREG) return -EACCES;
  return CALL(__NR_faccessat, AT_FDCWD, path, X_OK_);
}

/* Like execvp, but with a single execve at the end, because the filter would notify rose of failing ones, too. */
static long find(const char *name, char **environment, char *into, unsigned long room) {
  static const char usual[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const char *path = usual;
  unsigned long n, length = length_of(name);
  long result = -ENOENT;
  int i;

  for (i = 0; environment[i]; i++)
    if (same_name(environment[i], "PATH=")) path = environment[i] + 5;
  for (n = 0; name[n]; n++)
    if (name[n] == '/') {
      if (length >= room) return -ENAMETOOLONG;
      for (n = 0; n <= length; n++) into[n] = name[n];
      return executable(into);
    }
  while (*path) {
    unsigned long at = 0;
    long found;

    while (*path && *path != ':') {
      if (at < room) into[at++] = *path;
      path++;
    }
    if (*path == ':') path++;
    if (at == 0) into[at++] = '.';
    if (at + 1 + length >= room) continue;
    into[at++] = '/';
    for (n = 0; n <= length; n++) into[at + n] = name[n];
    found = executable(into);
    if (found == 0) return 0;
    if (found == -EACCES) result = found;
  }
  return result;
}

static long install(const struct sock_fprog *program) {
  const long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  long listener = -EACCES;
  int unprivileged;

  for (unprivileged = 0; unprivileged < 2; unprivileged++) {
    /* Without CAP_SYS_ADMIN, installing a filter requires no_new_privs. As a consequence, set-user-ID programs started
     * by the command gain no privileges. */
    if (unprivileged && call6(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0) < 0) break;
    listener = CALL(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, program);
    /* Linux before 5.19 does not know SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV. */
    if (listener == -EINVAL) listener = CALL(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
    if (listener >= 0 || listener != -EACCES) break;
  }
  return listener;
}

static void await_release(struct rose_enter_page *page, int socket) {
  const struct __kernel_timespec second = {1, 0};
  /* The wait is limited to about a minute. It is counted in instructions, so that time in which the process is frozen
   * does not count. */
  unsigned long spins = 1UL << 31;
  char byte;

  while (__atomic_load_n(&page->state, __ATOMIC_ACQUIRE) == ROSE_ENTER_WAITING) {
    if (!page->may_call) {
      RELAX();
      if (--spins == 0) fail(page, ROSE_ENTER_EXEC, -ETIMEDOUT);
      continue;
    }
    call6(__NR_futex, (long)&page->state, FUTEX_WAIT, ROSE_ENTER_WAITING, (long)&second, 0, 0);
    /* If the socket is closed, rose was killed. */
    if (call6(__NR_recvfrom, socket, (long)&byte, 1, MSG_DONTWAIT_, 0, 0) == 0) leave(127);
  }
}

/* Does what engines' `init` option does: it is the parent of the command and of orphans, passes signals on to the
 * command, and ends when the command ends. All signals are blocked and received with sigtimedwait, because the kernel
 * discards signals without a handler for the first process of a PID namespace unless they are blocked. */
static _Noreturn void be_init(char **argv, char **environment) {
  const unsigned long all = ~0UL;
  unsigned long before = 0;
  long child, pid, signal;
  int status;

  call6(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof(all), 0, 0);
  child = call6(__NR_clone, SIGCHLD, 0, 0, 0, 0, 0);
  if (child < 0) give_up("its init cannot start a process");
  if (child == 0) {
    call6(__NR_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before), 0, 0);
    CALL(__NR_execve, argv[0], argv, environment);
    give_up("its init cannot execute the command");
  }
  for (;;) {
    signal = call6(__NR_rt_sigtimedwait, (long)&all, 0, 0, sizeof(all), 0, 0);
    if (signal > 0 && signal != SIGCHLD) CALL(__NR_kill, child, signal, 0);
    while ((pid = call6(__NR_wait4, -1, (long)&status, WNOHANG, 0, 0, 0)) > 0)
      if (pid == child) leave((status & 0x7f) ? 128 + (status & 0x7f) : (status >> 8) & 0xff);
  }
}

__attribute__((used)) static _Noreturn void begin(long *stack) {
  static char file[4096];
  char **own = (char **)(stack + 1 + stack[0] + 1);
  struct rose_enter_page *page;
  int descriptors[ROSE_ENTER_DESCRIPTORS];
  char **argv, **further, **environment;
  long result;
  int socket, size;

  if (stack[0] == 2 && same_text((const char *)stack[2], ROSE_ENTER_HOLD))
    for (;;) PAUSE();
  if (stack[0] > 2 && same_text((const char *)stack[2], ROSE_ENTER_INIT)) be_init((char **)stack + 3, own);
  socket = (int)CALL(__NR_socket, AF_UNIX_, SOCK_SEQPACKET_CLOEXEC, 0);
  if (socket < 0) give_up("no socket can be made");
  size = meet(socket, descriptors);
  page = memory((unsigned long)size, descriptors[0]);
  if (!page || page->magic != ROSE_ENTER_MAGIC || page->version != ROSE_ENTER_VERSION)
    give_up("it is of another version");
  /* Programs may open /dev/stdout and /dev/stderr by name, so both files must have their usual descriptor numbers. */
  if (DUP_TO(descriptors[1], 1) < 0 || DUP_TO(descriptors[2], 2) < 0) fail(page, ROSE_ENTER_STREAMS, -EBADF);

  argv = memory((page->argc + page->envc + 2) * sizeof(char *), -1);
  if (!argv) give_up("no memory");
  further = strings((char *)page + page->argv_at, page->argc, argv) + 1;
  strings((char *)page + page->env_at, page->envc, further);
  environment = merge(own, further, page->envc);
  result = find(argv[0], environment, file, sizeof(file));
  if (result < 0) fail(page, ROSE_ENTER_FIND, result);

  if (page->filter_count) {
    const struct sock_fprog program = {(unsigned short)page->filter_count,
                                       (struct sock_filter *)((char *)page + page->filter_at)};

    result = install(&program);
    if (result < 0) fail(page, ROSE_ENTER_FILTER, result);
    page->listener = (int)result;
  }
  __atomic_store_n(&page->state, ROSE_ENTER_WAITING, __ATOMIC_RELEASE);
  await_release(page, socket);
  fail(page, ROSE_ENTER_EXEC, CALL(__NR_execve, file, argv, environment));
}

#ifdef __aarch64__
__asm__(
    ".globl _start\n"
    "_start:\n"
    "	mov x29, #0\n"
    "	mov x30, #0\n"
    "	mov x0, sp\n"
    "	bl begin\n");
#else
__asm__(
    ".globl _start\n"
    "_start:\n"
    "	xor %ebp, %ebp\n"
    "	mov %rsp, %rdi\n"
    "	and $-16, %rsp\n"
    "	call begin\n");
#endif
