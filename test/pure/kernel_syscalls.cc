// The numbers in rose's table of system calls must be those in the compiler's headers. The names of errors and signals
// are converted in both directions.
#include "kernel/syscalls.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <set>

#include "kernel/syscalls_arm64.h"

namespace kernel = rose::kernel;

TEST_CASE("every system call number is in the table once", "[kernel]") {
  std::set<int> numbers;
  std::set<std::string_view> names;
  for (const kernel::SyscallInfo& info : kernel::all_syscalls()) {
    INFO(info.name);
    CHECK(numbers.insert(info.number).second);
    CHECK(names.insert(info.name).second);
    CHECK(kernel::find_syscall(info.number) != nullptr);
    CHECK(kernel::find_syscall(info.number)->name == info.name);
    CHECK(kernel::find_syscall(info.name)->number == info.number);
    CHECK(kernel::syscall_name(info.number) == info.name);
    CHECK(kernel::syscall_number(info.name) == info.number);
    for (const int index : {info.path, info.dirfd, info.path2, info.dirfd2, info.fd, info.sockaddr}) {
      CHECK(index >= -1);
      CHECK(index <= 5);
    }
    // An index of a directory descriptor without a path, or of a second path without a first, would be an error in the
    // table.
    if (info.dirfd >= 0) CHECK(info.path > info.dirfd);
    if (info.dirfd2 >= 0) CHECK(info.path2 > info.dirfd2);
    if (info.path2 >= 0) CHECK(info.path >= 0);
    if (info.sockaddr >= 0) CHECK(info.fd >= 0);
  }
  CHECK(numbers.size() >= 380);
  CHECK(kernel::syscall_names().size() == numbers.size());
  for (int number = 0; number <= 336; ++number) {
    INFO(number);
    CHECK(numbers.contains(number));
  }
  for (int number = 424; number <= 469; ++number) {
    INFO(number);
    CHECK(numbers.contains(number));
  }
}

TEST_CASE("the table of system calls agrees with the headers", "[kernel]") {
  const std::pair<const char*, int> cases[] = {
      {"read", SYS_read},         {"openat", SYS_openat},
      {"openat2", SYS_openat2},   {"renameat2", SYS_renameat2},
      {"accept4", SYS_accept4},   {"fdatasync", SYS_fdatasync},
      {"statx", SYS_statx},       {"io_uring_enter", SYS_io_uring_enter},
      {"clone3", SYS_clone3},     {"faccessat2", SYS_faccessat2},
      {"execveat", SYS_execveat}, {"copy_file_range", SYS_copy_file_range},
      {"rseq", SYS_rseq},         {"newfstatat", SYS_newfstatat},
  };
  for (const auto& [name, number] : cases) {
    INFO(name);
    CHECK(kernel::syscall_number(name) == number);
  }
}

TEST_CASE("numbers newer than the table have a generic name", "[kernel]") {
  CHECK(kernel::syscall_name(470) == "syscall_470");
  CHECK(kernel::syscall_number("syscall_470") == 470);
  CHECK(kernel::syscall_number("syscall_0") == 0);
  CHECK(kernel::find_syscall(470) == nullptr);
  CHECK(kernel::find_syscall(-1) == nullptr);
  CHECK(kernel::find_syscall(kernel::kMostSyscalls) == nullptr);
  for (const char* bad : {"", "syscall_", "syscall_-1", "syscall_512", "syscall_0470", "syscall_4x", "syscall_ 4",
                          "syscall_99999999999", "fdatasinc", "READ", "read "}) {
    INFO(bad);
    CHECK_FALSE(kernel::syscall_number(bad));
  }
}

TEST_CASE("the table has the role of each argument", "[kernel]") {
  struct Case {
    const char* name;
    int path, dirfd, path2, dirfd2, fd, sockaddr;
    bool changing;
  };
  const Case cases[] = {
      {"open", 0, -1, -1, -1, -1, -1, true},
      {"openat", 1, 0, -1, -1, -1, -1, true},
      {"stat", 0, -1, -1, -1, -1, -1, false},
      {"newfstatat", 1, 0, -1, -1, -1, -1, false},
      {"rename", 0, -1, 1, -1, -1, -1, true},
      {"renameat2", 1, 0, 3, 2, -1, -1, true},
      {"link", 0, -1, 1, -1, -1, -1, true},
      {"linkat", 1, 0, 3, 2, -1, -1, true},
      {"symlink", 1, -1, 0, -1, -1, -1, true},
      {"symlinkat", 2, 1, 0, -1, -1, -1, true},
      {"mount", 1, -1, 0, -1, -1, -1, false},
      {"mmap", -1, -1, -1, -1, 4, -1, false},
      {"read", -1, -1, -1, -1, 0, -1, false},
      {"fsync", -1, -1, -1, -1, 0, -1, true},
      {"connect", -1, -1, -1, -1, 0, 1, true},
      {"bind", -1, -1, -1, -1, 0, 1, false},
      {"sendto", -1, -1, -1, -1, 0, 4, false},
      {"sendmsg", -1, -1, -1, -1, 0, -1, false},
      {"accept4", -1, -1, -1, -1, 0, -1, true},
      {"listen", -1, -1, -1, -1, 0, -1, true},
      {"execve", 0, -1, -1, -1, -1, -1, true},
      {"execveat", 1, 0, -1, -1, -1, -1, true},
      {"sync", -1, -1, -1, -1, -1, -1, true},
      {"msync", -1, -1, -1, -1, -1, -1, true},
      {"inotify_add_watch", 1, -1, -1, -1, 0, -1, false},
      {"fanotify_mark", 4, 3, -1, -1, 0, -1, false},
      {"copy_file_range", -1, -1, -1, -1, 2, -1, false},
      {"sendfile", -1, -1, -1, -1, 0, -1, false},
      {"statx", 1, 0, -1, -1, -1, -1, false},
      {"getpid", -1, -1, -1, -1, -1, -1, false},
      {"fchmodat2", 1, 0, -1, -1, -1, -1, false},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const kernel::SyscallInfo* info = kernel::find_syscall(c.name);
    REQUIRE(info != nullptr);
    CHECK(int{info->path} == c.path);
    CHECK(int{info->dirfd} == c.dirfd);
    CHECK(int{info->path2} == c.path2);
    CHECK(int{info->dirfd2} == c.dirfd2);
    CHECK(int{info->fd} == c.fd);
    CHECK(int{info->sockaddr} == c.sockaddr);
    CHECK(info->state_changing == c.changing);
  }
}

TEST_CASE("errno names and numbers are converted", "[kernel]") {
  CHECK(kernel::errno_name(EIO) == "EIO");
  CHECK(kernel::errno_name(EAGAIN) == "EAGAIN");
  CHECK(kernel::errno_name(EOPNOTSUPP) == "EOPNOTSUPP");
  CHECK(kernel::errno_name(EHWPOISON) == "EHWPOISON");
  CHECK(kernel::errno_number("EWOULDBLOCK") == EAGAIN);
  CHECK(kernel::errno_number("ENOTSUP") == EOPNOTSUPP);
  CHECK(kernel::errno_number("EDEADLOCK") == EDEADLK);
  for (int err = 1; err <= 4095; ++err) {
    if (kernel::errno_number(kernel::errno_name(err)) != err) FAIL("errno " << err);
  }
  CHECK(kernel::errno_name(4000) == "E4000");
  for (const char* bad : {"", "E", "E0", "E-5", "E4096", "EFOO", "eio", "5", "E05"}) {
    INFO(bad);
    CHECK_FALSE(kernel::errno_number(bad));
  }
}

TEST_CASE("signal names and numbers are converted", "[kernel]") {
  CHECK(kernel::signal_name(SIGKILL) == "SIGKILL");
  CHECK(kernel::signal_name(SIGSYS) == "SIGSYS");
  CHECK(kernel::signal_name(34) == "SIG34");
  for (int signal = 1; signal <= 64; ++signal) {
    INFO(signal);
    CHECK(kernel::signal_number(kernel::signal_name(signal)) == signal);
  }
  CHECK(kernel::signal_number("SIGPOLL") == SIGIO);
  for (const char* bad : {"", "SIG", "SIG0", "SIG65", "KILL", "SIGFOO", "9"}) {
    INFO(bad);
    CHECK_FALSE(kernel::signal_number(bad));
  }
}

TEST_CASE("call numbers in dumps are independent of the processor", "[kernel]") {
  for (int number = -1; number < kernel::kMostSyscalls; ++number) {
    CAPTURE(number);
    if (kernel::find_syscall(number) != nullptr || kernel::kPortableNumbers)
      CHECK(kernel::native_call(kernel::portable_call(number)) == number);
  }
  // In dumps, write is always 1 and unlinkat 263, as on x86-64, whatever their numbers are on this machine.
  CHECK(kernel::portable_call(kernel::find_syscall("write")->number) == 1);
  CHECK(kernel::portable_call(kernel::find_syscall("unlinkat")->number) == 263);
  // this name exists even if the processor has no such call
  CHECK(kernel::syscall_name(kernel::native_call(2)) == "open");
  CHECK(kernel::syscall_name(kernel::native_call(437)) == "openat2");
}

TEST_CASE("every system call of arm64 is in the table", "[kernel]") {
  std::set<int> numbers;
  for (const kernel::NumberedName& call : kernel::kArm64Calls) {
    CAPTURE(call.name);
    CHECK(kernel::find_syscall(call.name) != nullptr);
    CHECK(numbers.insert(call.number).second);
    CHECK(call.number < kernel::kSharedNumbers);
  }
  CHECK(numbers.size() > 270);
}

TEST_CASE("failures that runtimes cause on their own are distinguished from the program's", "[kernel]") {
  const char* catalogue = "/usr/share/locale/de/LC_MESSAGES/libc.mo";
  for (const int err : {ENOENT, EMFILE, ENFILE}) CHECK(kernel::runtime_asks(err, "openat", catalogue));
  CHECK_FALSE(kernel::runtime_asks(EMFILE, "openat", "/srv/table"));
  CHECK(kernel::runtime_asks(EPERM, "epoll_ctl", "/srv/table"));
  CHECK_FALSE(kernel::runtime_asks(EPERM, "openat", "/srv/table"));
}
