// When a helper process ends, everything that it started ends, too.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <fstream>

#include "base/file.h"
#include "base/held_child.h"
#include "eventually.h"
#include "folder.h"

using namespace rose;
using rose::test::Folder;

namespace {

pid_t written(const std::filesystem::path& file) {
  pid_t pid = 0;
  std::ifstream(file) >> pid;
  return pid;
}

HeldChild start(const std::string& script) {
  auto child = HeldChild::fork_held({"/bin/sh", "-c", script}, HeldChild::Kind::own_group);
  REQUIRE(child);
  REQUIRE(child->release());
  return std::move(*child);
}

bool gone(pid_t pid) { return ::kill(pid, 0) != 0; }

}  // namespace

TEST_CASE("a helper's children end with it, also those in their own sessions") {
  const Folder folder;
  const std::string pid = (folder / "pid").string();
  // This daemon was started by a daemon, so only its ancestry shows that it belongs to the helper.
  const std::string daemon = "setsid sh -c 'setsid sh -c \"echo \\$\\$ > " + pid + ".new; mv " + pid + ".new " + pid +
                             "; exec sleep 1000\" &' & ";
  SECTION("the helper exits") {
    HeldChild child = start(daemon + "until test -e " + pid + "; do sleep 0.01; done; exit 3");
    REQUIRE(rose::test::eventually([&] { return written(pid) > 0; }));
    const pid_t one = written(pid);
    pollfd ended{child.pidfd(), POLLIN, 0};
    REQUIRE(rose::test::eventually([&] { return ::poll(&ended, 1, 0) == 1; }));
    const auto status = child.end(10'000);
    REQUIRE(status);
    CHECK(WIFEXITED(*status));
    CHECK(WEXITSTATUS(*status) == 3);
    CHECK(gone(one));
  }
  SECTION("the helper is killed") {
    HeldChild child = start(daemon + "sleep 1000");
    REQUIRE(rose::test::eventually([&] { return written(pid) > 0; }));
    const pid_t one = written(pid);
    const auto status = child.end(0);
    REQUIRE(status);
    CHECK(WIFSIGNALED(*status));
    CHECK(WTERMSIG(*status) == SIGKILL);
    CHECK(gone(one));
  }
  SECTION("the helper's owner dies") {
    const pid_t owner = ::fork();
    if (owner == 0) {
      auto child = HeldChild::fork_held({"/bin/sh", "-c", daemon + "sleep 1000"}, HeldChild::Kind::own_group);
      if (!child || !child->release()) ::_exit(1);
      ::pause();
      ::_exit(0);
    }
    REQUIRE(rose::test::eventually([&] { return written(pid) > 0; }));
    const pid_t one = written(pid);
    ::kill(owner, SIGKILL);
    ::waitpid(owner, nullptr, 0);
    CHECK(rose::test::eventually([&] { return gone(one); }));
  }
}

TEST_CASE("a helper first gets SIGTERM, and a command that cannot be executed is reported") {
  const Folder folder;
  const std::string file = (folder / "ended").string();
  HeldChild child =
      start("trap 'echo yes > " + file + "; exit 0' TERM; : > " + file + "; while :; do sleep 0.02; done");
  REQUIRE(rose::test::eventually([&] { return std::filesystem::exists(file); }));
  const auto status = child.end(30'000);
  REQUIRE(status);
  CHECK(WIFEXITED(*status));
  CHECK(read_file(file).value() == "yes\n");

  auto none = HeldChild::fork_held({"/no/such/program"}, HeldChild::Kind::own_group);
  REQUIRE(none);
  const auto begun = none->release();
  REQUIRE_FALSE(begun);
  CHECK(begun.error().message == "cannot run '/no/such/program': No such file or directory");
}
