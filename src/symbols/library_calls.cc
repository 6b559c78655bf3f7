#include "symbols/library_calls.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_set>

#include "base/ascii.h"

namespace rose::symbols {
namespace {

using Names = std::unordered_set<std::string_view>;

// Names of functions, without the prefixes and suffixes "__", "__libc_", "64", "_chk" and "_nocancel".
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

// Functions for buffered output. A call of such a function enters the kernel only if the buffer is full.
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

// Removes the prefixes and suffixes: "__libc_pwrite64_nocancel" becomes "pwrite".
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

// The last component in lower case: "WriteAt" becomes "writeat", "(*File).Sync" becomes "sync",
// "std::filesystem::rename" becomes "rename".
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

namespace {

struct NumberedCall {
  std::string_view name;
  int x86, arm64;  // -1: this processor does not have the call
};
constexpr NumberedCall kNumbered[] = {
    {"write", 1, 64},
    {"pwrite64", 18, 68},
    {"writev", 20, 66},
    {"pwritev", 296, 70},
    {"pwritev2", 328, 287},
    {"open", 2, -1},
    {"openat", 257, 56},
    {"creat", 85, -1},
    {"rename", 82, -1},
    {"renameat", 264, 38},
    {"renameat2", 316, 276},
    {"link", 86, -1},
    {"linkat", 265, 37},
    {"symlink", 88, -1},
    {"symlinkat", 266, 36},
    {"unlink", 87, -1},
    {"unlinkat", 263, 35},
    {"mkdir", 83, -1},
    {"mkdirat", 258, 34},
    {"rmdir", 84, -1},
    {"truncate", 76, 45},
    {"ftruncate", 77, 46},
    {"fallocate", 285, 47},
    {"fsync", 74, 82},
    {"fdatasync", 75, 83},
    {"sync", 162, 81},
    {"syncfs", 306, 267},
    {"sync_file_range", 277, 84},
    {"msync", 26, 227},
    {"sendto", 44, 206},
    {"sendmsg", 46, 211},
    {"sendmmsg", 307, 269},
    {"sendfile", 40, 71},
    {"splice", 275, 76},
    {"copy_file_range", 326, 285},
    {"connect", 42, 203},
    {"bind", 49, 200},
    {"listen", 50, 201},
    {"accept", 43, 202},
    {"accept4", 288, 242},
    {"shutdown", 48, 210},
    {"socket", 41, 198},
    {"clone", 56, 220},
    {"fork", 57, -1},
    {"vfork", 58, -1},
    {"execve", 59, 221},
    {"kill", 62, 129},
    {"tgkill", 234, 131},
    {"chmod", 90, -1},
    {"fchmod", 91, 52},
    {"flock", 73, 32},
    {"ioctl", 16, 29},
    {"io_submit", 209, 2},
    {"io_uring_enter", 426, -1},
    {"read", 0, 63},
    {"pread64", 17, 67},
    {"close", 3, 57},
    {"lseek", 8, 62},
    {"recvfrom", 45, 207},
    {"recvmsg", 47, 212},
    {"futex", 202, 98},
    {"nanosleep", 35, 101},
};

}  // namespace

std::string_view call_of_number(std::uint64_t number, const Machine& machine) {
  for (const NumberedCall& call : kNumbered) {
    const int own = machine.elf == EM_AARCH64 ? call.arm64 : call.x86;
    if (own >= 0 && static_cast<std::uint64_t>(own) == number) return call.name;
  }
  return {};
}

}  // namespace rose::symbols
