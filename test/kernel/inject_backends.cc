// Calls that both backends of syscall faults must match, however they are made, and which backend is chosen in which
// case. With ROSE_TEST_BACKEND=override in the environment, all tests of this file use the override backend.
#include <csignal>

#include "inject_rig.h"
#include "kernel/old_kernel.h"

using namespace rose;
using namespace rose::test;

TEST_CASE("a fault matches a path that is not in memory when the call is made") {
  Rig rig;
  rig.add({"cold", "first.file", "cold", "second.file", "cold", "second.file", "print", "done"});
  rig.start(R"(
[[fault]]
id = "cold"
kind = "syscall"
node = "n1"
syscall = "openat"
path = "*/n1/second.file"
error = "EMFILE"
)");
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(rig.out() == "cold first.file = 0\ncold second.file = EMFILE\ncold second.file = 0\ndone\n");
  CHECK(outcome.seen == 1);
  CHECK(outcome.detail == "openat(" + rig.path("n1/second.file") + ")");
}

TEST_CASE("paths with detours, of pipes and of removed files, and patterns with several stars match") {
  Rig rig;
  rig.add({"mkdir",  "a",
           "mkdir",  "a/b",
           "create", "a/../a/./b//x.log",
           "write",  "1",
           "unlink", "a/b/x.log",
           "write",  "2",
           "create", "/../../tmp/../proc/self/cwd/y.log",
           "write",  "3",
           "create", "z",
           "write",  "4",
           "print",  "done"});
  rig.start(R"(
[[fault]]
id = "detour"
kind = "syscall"
node = "n1"
syscall = "openat"
path = "*/n1/a/b/x.log"
error = "EIO"
count = 2
[[fault]]
id = "removed"
kind = "syscall"
node = "n1"
syscall = "write"
path = "/*n1*a*/?.log"
error = "ENOSPC"
count = 2
[[fault]]
id = "root"
kind = "syscall"
node = "n1"
syscall = "open*"
path = "/proc/self/cwd/y.log"
error = "EXDEV"
[[fault]]
id = "nothing"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/n1/zz"
error = "EIO"
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(rig.out() ==
        "mkdir a = 0\nmkdir a/b = 0\ncreate a/../a/./b//x.log = 0\nwrite = 1\nunlink a/b/x.log = 0\nwrite = ENOSPC\n"
        "create /../../tmp/../proc/self/cwd/y.log = EXDEV\nwrite = 1\ncreate z = 0\nwrite = 1\ndone\n");
  CHECK_FALSE(outcomes.at(0).fired);
  CHECK(outcomes.at(0).seen == 1);
  CHECK(outcomes.at(1).fired);
  CHECK(outcomes.at(1).detail == "write(" + rig.path("n1/a/b/x.log") + ")");
  CHECK(outcomes.at(2).fired);
  CHECK_FALSE(outcomes.at(3).fired);
  CHECK_FALSE(rig.exists("n1/y.log"));
}

TEST_CASE("IPv6 addresses, Unix socket paths and listening ports match") {
  Rig rig(config::Network::netns);
  rig.add({"connect6", "7201", "connect6", "7202", "unix", "sock", "uconnect", "sock", "uconnect", "sock", "listen",
           "7203", "accept", "print", "done"});
  rig.start(R"(
[[fault]]
id = "six"
kind = "syscall"
node = "n1"
syscall = "connect"
peer = "[::1]:7202"
error = "ENETUNREACH"
[[fault]]
id = "unix"
kind = "syscall"
node = "n1"
syscall = "connect"
peer = "unix:*ock"
error = "EACCES"
count = 2
[[fault]]
id = "accept"
kind = "syscall"
node = "n1"
syscall = "accept*"
local = ":7203"
error = "ECONNABORTED"
)");
  rig.wait_end();
  const auto outcomes = rig.finish_fired();
  CHECK(rig.out() ==
        "connect6 = ECONNREFUSED\nconnect6 = ENETUNREACH\nunix = 0\nuconnect = 0\nuconnect = EACCES\nlisten = 0\n"
        "accept = ECONNABORTED\ndone\n");
  CHECK(outcomes.at(0).detail == "connect(peer [::1]:7202)");
  CHECK(outcomes.at(2).detail == "accept4(local 0.0.0.0:7203)");
}

TEST_CASE("then = crash ends the node instead of the nth call, which is not executed") {
  Rig rig;
  auto& node = rig.add({"append", "data", "fork", "gate", "never", ";", "write", "x"});
  node.command = {kVictim, "append", "data", "write", "one", "write", "two", "write", "three", "print", "survived"};
  rig.start(R"(
[[fault]]
id = "die"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/data"
error = "EIO"
count = 2
then = "crash"
)");
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(rig.out() == "append data = 0\nwrite = 3\n");
  CHECK(rig.read("n1/data") == "one");
  CHECK(outcome.fired);
  CHECK(outcome.injected == 1);
  CHECK(outcome.detail == "SIGKILL to 1 process of n1 at write(" + rig.path("n1/data") + ")");
}

TEST_CASE("1,024 faults are armed, and one call counts for 4,096 conditions") {
  constexpr int kFaults = 1024, kConditions = 4;
  Rig rig;
  rig.add({"create", "data", "repeat", "4", "write", "x", ";", "fsync", "fsync", "print", "done"});
  std::string schedule;
  for (int i = 0; i < kFaults; ++i) {
    // All faults wait for the same four writes. Then the last fault fails the fsync. The others are for a call that is
    // never made.
    schedule += fmt::format(
        "[[fault]]\nid = \"f{}\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"{}\"\nerror = \"EIO\"\nwhen = [", i,
        i == kFaults - 1 ? "fsync" : "sync");
    for (int k = 0; k < kConditions; ++k) schedule += "{ syscall = \"write\", path = \"*/data\" },";
    schedule += "]\n";
  }
  rig.start(schedule);
  rig.wait_end();
  const auto outcomes = rig.finish();
  int armed = 0, met = 0;
  for (const auto& one : outcomes) {
    armed += one.armed ? 1 : 0;
    for (const auto& condition : one.conditions) met += condition.met ? 1 : 0;
  }
  CHECK(armed == kFaults);
  CHECK(met == kFaults * kConditions);
  CHECK(outcomes.back().fired);
  CHECK(rig.out() == "create data = 0\nwrite = 1\nwrite = 1\nwrite = 1\nwrite = 1\nfsync = EIO\nfsync = 0\ndone\n");
}

TEST_CASE("the backend is chosen by the schedule and the kernel, and the reason is given") {
  const std::string plain =
      "version = 1\nname = \"t\"\n[[fault]]\nid = \"a\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = \"read\"\nerror "
      "= \"EIO\"\n";
  const std::string delayed = plain + "delay = \"1ms\"\n";
  Rig rig;
  rig.add({"print", "done"});
  const auto made = [&](const std::string& text, config::Backend backend) {
    rig.config.inject.syscall = backend;
    auto schedule = schedule::parse_schedule(text, "t.toml");
    REQUIRE(schedule);
    return inject::Injector::create(*schedule, rig.config);
  };
  const bool can = kernel::probe("override_return").ok && !kernel::is_old();

  auto automatic = made(plain, config::Backend::automatic);
  REQUIRE(automatic);
  CHECK((*automatic)->backend().starts_with(can ? "override: " : "seccomp: this machine has no bpf_override_return"));
  automatic = made(delayed, config::Backend::automatic);
  REQUIRE(automatic);
  CHECK((*automatic)->backend() == "seccomp: fault 'a': a delayed call must wait in user space");
  const auto seccomp = made(plain, config::Backend::seccomp);
  REQUIRE(seccomp);
  CHECK((*seccomp)->backend() == "seccomp: [inject] syscall requires it");

  const auto wanted = made(plain, config::Backend::override_return);
  CHECK(wanted.has_value() == can);
  if (!wanted) {
    CHECK(wanted.error().kind == ErrorKind::environment);
    CHECK(wanted.error().message.find("the override backend for syscall faults cannot be used: ") == 0);
    CHECK(wanted.error().hint.find("CONFIG_BPF_KPROBE_OVERRIDE") != std::string::npos);
  }
  const auto impossible = made(delayed, config::Backend::override_return);
  REQUIRE_FALSE(impossible);
  CHECK(impossible.error().kind == ErrorKind::input);
  CHECK(impossible.error().message.find("fault 'a': a delayed call") != std::string::npos);
}
