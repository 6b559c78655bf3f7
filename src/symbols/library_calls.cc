#include "symbols/library_calls.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_set>

#include "base/ascii.h"

namespace rose::symbols {
namespace {

using Names = std::unordered_set<std::string_view>;

// Names without "__", "__libc_", "64", "_chk" and "_nocancel".
const Names& changing() {
  static const Names names{"write",
                           "pwrite",
                           "writev",
                           "pwritev",
                           "pwritev2",
                           "open",
                           "openat",
                           "openat2",
                           "creat",
                           "rename",
                           "renameat",
                           "renameat2",
                           "link",
                           "linkat",
                           "symlink",
                           "symlinkat",
                           "unlink",
                           "unlinkat",
                           "rmdir",
                           "remove",
                           "mkdir",
                           "mkdirat",
                           "mknod",
                           "mknodat",
                           "mkfifo",
                           "mkstemp",
                           "mkostemp",
                           "mkdtemp",
                           "truncate",
                           "ftruncate",
                           "fallocate",
                           "posix_fallocate",
                           "fsync",
                           "fdatasync",
                           "sync",
                           "syncfs",
                           "sync_file_range",
                           "msync",
                           "send",
                           "sendto",
                           "sendmsg",
                           "sendmmsg",
                           "sendfile",
                           "splice",
                           "tee",
                           "vmsplice",
                           "copy_file_range",
                           "connect",
                           "bind",
                           "listen",
                           "accept",
                           "accept4",
                           "shutdown",
                           "socket",
                           "fork",
                           "vfork",
                           "clone",
                           "clone3",
                           "execve",
                           "execv",
                           "execvp",
                           "execvpe",
                           "execl",
                           "execlp",
                           "execle",
                           "execveat",
                           "fexecve",
                           "posix_spawn",
                           "posix_spawnp",
                           "system",
                           "popen",
                           "kill",
                           "tgkill",
                           "killpg",
                           "raise",
                           "setxattr",
                           "fsetxattr",
                           "lsetxattr",
                           "removexattr",
                           "fremovexattr",
                           "chmod",
                           "fchmod",
                           "fchmodat",
                           "chown",
                           "fchown",
                           "lchown",
                           "fchownat",
                           "flock",
                           "lockf",
                           "utimensat",
                           "futimens",
                           "mount",
                           "umount",
                           "umount2",
                           "pivot_root",
                           "chroot",
                           "swapon",
                           "swapoff",
                           "syscall",
                           "ioctl",
                           "io_submit",
                           "io_uring_enter",
                           "io_uring_submit",
                           "io_uring_submit_and_wait",
                           "aio_write",
                           "aio_fsync",
                           "lio_listio",
                           "dprintf",
                           "vdprintf",
                           "shm_open",
                           "shm_unlink",
                           "mq_send",
                           "mq_timedsend",
                           "msgsnd",
                           "semop",
                           "sem_open",
                           "sem_unlink",
                           "eventfd_write",
                           "timerfd_settime",
                           "setsid",
                           "setpgid",
                           "daemon",
                           "reboot",
                           "memfd_create"};
  return names;
}

const Names& asking() {
  static const Names names{"read",
                           "pread",
                           "readv",
                           "preadv",
                           "preadv2",
                           "recv",
                           "recvfrom",
                           "recvmsg",
                           "recvmmsg",
                           "lseek",
                           "stat",
                           "fstat",
                           "lstat",
                           "xstat",
                           "fxstat",
                           "lxstat",
                           "fxstatat",
                           "fstatat",
                           "statx",
                           "statfs",
                           "fstatfs",
                           "access",
                           "faccessat",
                           "euidaccess",
                           "close",
                           "close_range",
                           "dup",
                           "dup2",
                           "dup3",
                           "fcntl",
                           "poll",
                           "ppoll",
                           "select",
                           "pselect",
                           "epoll_create",
                           "epoll_create1",
                           "epoll_ctl",
                           "epoll_wait",
                           "epoll_pwait",
                           "epoll_pwait2",
                           "nanosleep",
                           "clock_nanosleep",
                           "usleep",
                           "sleep",
                           "pause",
                           "getdents",
                           "opendir",
                           "fdopendir",
                           "readdir",
                           "closedir",
                           "scandir",
                           "pipe",
                           "pipe2",
                           "eventfd",
                           "signalfd",
                           "timerfd_create",
                           "inotify_init",
                           "inotify_init1",
                           "inotify_add_watch",
                           "getsockopt",
                           "setsockopt",
                           "getsockname",
                           "getpeername",
                           "socketpair",
                           "wait",
                           "waitpid",
                           "wait3",
                           "wait4",
                           "waitid",
                           "mmap",
                           "munmap",
                           "mremap",
                           "mprotect",
                           "madvise",
                           "readlink",
                           "readlinkat",
                           "getcwd",
                           "chdir",
                           "fchdir",
                           "readahead",
                           "posix_fadvise",
                           "getxattr",
                           "fgetxattr",
                           "listxattr",
                           "sched_yield",
                           "aio_read",
                           "aio_return",
                           "aio_suspend",
                           "io_getevents",
                           "io_uring_wait_cqe",
                           "mq_receive",
                           "msgrcv",
                           "getrandom",
                           "getentropy",
                           "eventfd_read",
                           "prctl",
                           "futex",
                           "getaddrinfo",
                           "gethostbyname",
                           "realpath",
                           "getrusage",
                           "setrlimit",
                           "sigprocmask",
                           "sigaction",
                           "sigwait",
                           "sigtimedwait"};
  return names;
}

// Buffered output: whether a call enters the kernel depends on how full the buffer is.
const Names& buffered_changing() {
  static const Names names{
      "fflush",  "fflush_unlocked", "fclose",   "fopen",  "freopen", "fdopen",    "fwrite",       "fwrite_unlocked",
      "fputs",   "fputs_unlocked",  "fputc",    "putc",   "putchar", "_IO_putc",  "puts",         "printf",
      "vprintf", "fprintf",         "vfprintf", "perror", "pclose",  "tmpfile",   "gzwrite",      "gzclose",
      "gzflush", "syslog",          "vsyslog",  "ftw",    "nftw",    "fcloseall", "sqlite3_step", "sqlite3_exec",
      "exit"};
  return names;
}

const Names& buffered_asking() {
  static const Names names{"fread", "fread_unlocked", "fgets",  "fgetc", "getc",   "getline", "getdelim", "fscanf",
                           "fseek", "fseeko",         "rewind", "ftell", "ftello", "gzread",  "gzopen"};
  return names;
}

const Names& quiet_ones() {
  static const Names names{"memcpy",
                           "memmove",
                           "memset",
                           "memcmp",
                           "memchr",
                           "memrchr",
                           "mempcpy",
                           "strlen",
                           "strnlen",
                           "strcpy",
                           "strncpy",
                           "stpcpy",
                           "strcat",
                           "strncat",
                           "strcmp",
                           "strncmp",
                           "strcasecmp",
                           "strncasecmp",
                           "strchr",
                           "strrchr",
                           "strstr",
                           "strtok",
                           "strtok_r",
                           "strdup",
                           "strndup",
                           "strtol",
                           "strtoul",
                           "strtoll",
                           "strtoull",
                           "strtod",
                           "atoi",
                           "atol",
                           "snprintf",
                           "vsnprintf",
                           "sprintf",
                           "vsprintf",
                           "asprintf",
                           "sscanf",
                           "malloc",
                           "calloc",
                           "realloc",
                           "reallocarray",
                           "free",
                           "aligned_alloc",
                           "posix_memalign",
                           "qsort",
                           "bsearch",
                           "errno_location",
                           "strerror",
                           "strerror_r",
                           "stack_chk_fail",
                           "abort",
                           "assert_fail",
                           "cxa_throw",
                           "cxa_begin_catch",
                           "cxa_end_catch",
                           "cxa_allocate_exception",
                           "cxa_free_exception",
                           "cxa_rethrow",
                           "cxa_call_unexpected",
                           "cxa_guard_acquire",
                           "cxa_guard_release",
                           "cxa_guard_abort",
                           "cxa_pure_virtual",
                           "cxa_bad_cast",
                           "cxa_throw_bad_array_new_length",
                           "_Unwind_Resume",
                           "htonl",
                           "htons",
                           "ntohl",
                           "ntohs",
                           "crc32",
                           "adler32",
                           "gettimeofday",
                           "clock_gettime",
                           "time",
                           "localtime_r",
                           "gmtime_r",
                           "strftime",
                           "getenv",
                           "rand",
                           "srand",
                           "rand_r",
                           "random"};
  return names;
}

// "__libc_pwrite64_nocancel" becomes "pwrite".
std::string_view plain(std::string_view name) {
  if (const std::size_t version = name.find('@'); version != std::string_view::npos) name = name.substr(0, version);
  for (const std::string_view front : {"__GI_", "__libc_", "__interceptor_", "__"})
    while (name.size() > front.size() && name.starts_with(front)) name.remove_prefix(front.size());
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view end : {"_nocancel", "_chk", "64", "_2"})
      if (name.size() > end.size() && name.ends_with(end)) {
        name.remove_suffix(end.size());
        again = true;
      }
  }
  return name;
}

// "WriteAt" becomes "writeat", "(*File).Sync" "sync", "std::filesystem::rename" "rename".
std::string last_word(std::string_view bare) {
  const std::size_t at = bare.find_last_of(":.");
  return lower_case(at == std::string_view::npos ? bare : bare.substr(at + 1));
}

bool changes_by_word(std::string_view bare) {
  const std::string word = last_word(bare);
  if (changing().contains(plain(word))) return true;
  for (const char* part :
       {"write", "sync",   "truncate", "rename", "remove", "unlink",  "create", "mkdir",  "send",  "link",
        "open",  "resize", "copy",     "flush",  "close",  "connect", "listen", "accept", "start", "kill"})
    if (word.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

LibraryCall library_call(std::string_view linkage_name, std::string_view bare, bool library) {
  if (library) {
    const std::string_view name = plain(linkage_name);
    if (changing().contains(name)) return {true, true, 0, false};
    if (asking().contains(name)) return {true, false, 0, false};
    if (buffered_changing().contains(name)) return {true, true, 1, false};
    if (buffered_asking().contains(name)) return {true, false, 1, false};
    if (quiet_ones().contains(name)) return {false, false, 0, true};
  }

  for (const std::string_view package : {"syscall.", "internal/runtime/syscall.", "runtime/internal/syscall.",
                                         "internal/syscall/", "golang.org/x/sys/unix."})
    if (bare.starts_with(package)) return {true, changes_by_word(bare), 0, false};
  for (const std::string_view package : {"os.", "internal/poll.(*FD).", "net.(*", "os/exec.(*Cmd)."})
    if (bare.starts_with(package) && linkage_name == bare && changes_by_word(bare)) return {true, true, 1, false};

  if (bare.starts_with("std::filesystem::") && bare.find("path::") == std::string_view::npos)
    return {true, changes_by_word(bare), 1, false};
  for (const std::string_view file : {"std::basic_filebuf<", "std::basic_ofstream<", "std::basic_fstream<"})
    if (bare.starts_with(file)) return {true, true, 1, false};
  if (bare.starts_with("std::basic_ifstream<")) return {true, false, 1, false};
  for (const std::string_view stream :
       {"std::ostream::flush", "std::ostream::write", "std::ostream::put", "std::endl<"})
    if (bare.starts_with(stream)) return {true, true, 1, false};

  if (bare.starts_with("operator new") || bare.starts_with("operator delete") || bare.starts_with("std::__throw_") ||
      bare.starts_with("std::terminate") || bare.starts_with("std::__cxx11::basic_string<") ||
      bare.starts_with("runtime.") || bare.starts_with("core::") || bare.starts_with("alloc::"))
    return {false, false, 0, true};
  return {};
}

std::string_view call_of_number(std::uint64_t number) {
  switch (number) {
#define ROSE_CALL(name) \
  case SYS_##name: return #name
    ROSE_CALL(write);
    ROSE_CALL(pwrite64);
    ROSE_CALL(writev);
    ROSE_CALL(pwritev);
    ROSE_CALL(pwritev2);
    ROSE_CALL(open);
    ROSE_CALL(openat);
    ROSE_CALL(creat);
    ROSE_CALL(rename);
    ROSE_CALL(renameat);
    ROSE_CALL(renameat2);
    ROSE_CALL(link);
    ROSE_CALL(linkat);
    ROSE_CALL(symlink);
    ROSE_CALL(symlinkat);
    ROSE_CALL(unlink);
    ROSE_CALL(unlinkat);
    ROSE_CALL(mkdir);
    ROSE_CALL(mkdirat);
    ROSE_CALL(rmdir);
    ROSE_CALL(truncate);
    ROSE_CALL(ftruncate);
    ROSE_CALL(fallocate);
    ROSE_CALL(fsync);
    ROSE_CALL(fdatasync);
    ROSE_CALL(sync);
    ROSE_CALL(syncfs);
    ROSE_CALL(sync_file_range);
    ROSE_CALL(msync);
    ROSE_CALL(sendto);
    ROSE_CALL(sendmsg);
    ROSE_CALL(sendmmsg);
    ROSE_CALL(sendfile);
    ROSE_CALL(splice);
    ROSE_CALL(copy_file_range);
    ROSE_CALL(connect);
    ROSE_CALL(bind);
    ROSE_CALL(listen);
    ROSE_CALL(accept);
    ROSE_CALL(accept4);
    ROSE_CALL(shutdown);
    ROSE_CALL(socket);
    ROSE_CALL(clone);
    ROSE_CALL(fork);
    ROSE_CALL(vfork);
    ROSE_CALL(execve);
    ROSE_CALL(kill);
    ROSE_CALL(tgkill);
    ROSE_CALL(chmod);
    ROSE_CALL(fchmod);
    ROSE_CALL(flock);
    ROSE_CALL(ioctl);
    ROSE_CALL(io_submit);
    ROSE_CALL(io_uring_enter);
    ROSE_CALL(read);
    ROSE_CALL(pread64);
    ROSE_CALL(close);
    ROSE_CALL(lseek);
    ROSE_CALL(recvfrom);
    ROSE_CALL(recvmsg);
    ROSE_CALL(futex);
    ROSE_CALL(nanosleep);
#undef ROSE_CALL
    default: return {};
  }
}

}  // namespace rose::symbols
