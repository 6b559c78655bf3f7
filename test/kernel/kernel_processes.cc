#include <catch2/catch.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"
#include "skip.h"

using namespace rose;

TEST_CASE("processes are distinguished by their entries in /proc") {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "a) Z 1 (b");  // a name that parsers of the line must handle
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      ::pause();
      ::_exit(0);
    }
    if (::write(ready[1], &grandchild, sizeof grandchild) < 0) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  pid_t grandchild = 0;
  REQUIRE(::read(ready[0], &grandchild, sizeof grandchild) == sizeof grandchild);
  ::close(ready[0]);
  ::close(ready[1]);

  const auto own = kernel::process_stat(::getpid());
  const auto stat = kernel::process_stat(child);
  REQUIRE(own.has_value());
  REQUIRE(stat.has_value());
  CHECK(stat->ppid == ::getpid());
  CHECK(stat->start_ticks >= own->start_ticks);
  CHECK(own->start_ticks > 0);
  CHECK(kernel::with_descendants({child}) == std::vector<pid_t>{child, grandchild});
  CHECK(kernel::with_descendants({grandchild, child}) == std::vector<pid_t>{grandchild, child});
  const auto all = kernel::with_descendants({::getpid()});
  CHECK(std::find(all.begin(), all.end(), grandchild) != all.end());

  const Fd pidfd = kernel::open_pidfd(child);
  REQUIRE(pidfd);
  CHECK(kernel::pidfd_signal(pidfd.get(), SIGSTOP));
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  CHECK(kernel::process_stat(child)->state == 'T');
  ::kill(grandchild, SIGKILL);
  CHECK(kernel::pidfd_signal(pidfd.get(), SIGKILL));
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(kernel::process_stat(child)->state == 'Z');
  CHECK(kernel::process_exists(child));
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_FALSE(kernel::process_exists(child));
  CHECK_FALSE(kernel::process_stat(child).has_value());
  CHECK_FALSE(kernel::open_pidfd(child));
}

TEST_CASE("a cgroup is found by folder and by process, with the kernel's id") {
  const auto mount = kernel::cgroup2_mount();
  if (!mount || ::geteuid() != 0) test::skip_case("needs root and cgroup v2");
  const std::filesystem::path folder = *mount / ("rosetest-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto found = kernel::find_cgroup(folder);
  REQUIRE(found.has_value());
  struct stat info{};
  REQUIRE(::stat(folder.c_str(), &info) == 0);
  CHECK(found->id == info.st_ino);
  CHECK(found->level >= 1);
  CHECK(found->name.ends_with(folder.filename().string()));
  const auto later = kernel::find_cgroup(folder / "a" / "b");
  REQUIRE(later.has_value());
  CHECK(later->id == 0);
  CHECK(later->level == found->level + 2);

  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  REQUIRE(write_control(folder / "cgroup.procs", std::to_string(child)).has_value());
  CHECK(kernel::cgroup_folder_of(child) == folder);
  CHECK(kernel::cgroup_of(child).value().id == found->id);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(kernel::cgroup_folder_of(child).empty());
  while (::rmdir(folder.c_str()) != 0 && errno == EBUSY) ::usleep(1000);
  CHECK_FALSE(kernel::find_cgroup("/proc").has_value());
}
