// Real limits of resources. The node has the limit, no other process has it, and it is removed at the end.
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "inject_limits.h"

using namespace rose;
using namespace rose::test;

TEST_CASE("descriptors: the limit applies to every process of the node and to new ones", "[limits]") {
  Rig rig;
  const std::vector<std::string> steps = {"fork",   "print",  "forked", "gate",     "../go", "repeat",
                                          "40",     "create", "c",      ";",        "gate",  "../after",
                                          "create", "d",      "gate",   "../never", ";"};
  rig.add(steps);
  rig.add(steps);
  rig.start(R"(
[[fault]]
id = "few"
kind = "descriptors"
node = "n1"
limit = 20
when = [ { log = "forked" } ]
until = [ { log = "EMFILE" } ]
)");
  rig.wait_printed("forked", 1);
  std::vector<pid_t> others = rig.deployment->processes(1);
  const auto before = descriptors_of(others.at(0));
  REQUIRE(before.rlim_cur > 40);
  rig.wait_printed("forked", 0);
  const auto pids = rig.deployment->processes(0);
  REQUIRE(pids.size() == 2);
  for (const pid_t pid : pids) CHECK(eventually([&] { return has_descriptors(pid, 20); }));
  for (const pid_t pid : others) CHECK(descriptors_of(pid).rlim_cur == before.rlim_cur);
  rig.touch("go");
  rig.wait_printed("create c = EMFILE", 0);
  // The fault ends when the node has printed that line, so the previous limits are restored.
  for (const pid_t pid : pids)
    CHECK(eventually([&] {
      return descriptors_of(pid).rlim_max == before.rlim_max && descriptors_of(pid).rlim_cur == before.rlim_cur;
    }));
  rig.touch("after");
  rig.wait_printed("create d = 0", 0);
  rig.wait_printed("create d = 0", 1);
  CHECK(rig.out(1).find("EMFILE") == std::string::npos);
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.ended_ns > outcome.fired_ns);
  CHECK(outcome.injected == 2);
  CHECK(outcome.detail == "2 processes of n1 and their children: at most 20 descriptors each");
}

TEST_CASE("descriptors: a restarted node has the limit from its first instruction", "[limits]") {
  Rig rig;
  rig.add({"print", "up", "gate", "../never"}).restart = config::Restart{1'000'000, 5};
  rig.start(R"(
[[fault]]
id = "few"
kind = "descriptors"
node = "n1"
limit = 12
when = [ { log = "up" } ]
)");
  const pid_t first = rig.deployment->main_pid(0);
  REQUIRE(eventually([&] { return has_descriptors(first, 12); }));
  REQUIRE(::kill(first, SIGKILL) == 0);
  REQUIRE(eventually([&] { return rig.lines("up") == 2; }));
  const pid_t second = rig.deployment->main_pid(0);
  CHECK(second != first);
  CHECK(has_descriptors(second, 12));
  rig.injector->disarm();
  CHECK_FALSE(has_descriptors(second, 12));
  CHECK(rig.finish().at(0).fired);
}

TEST_CASE("memory: exceeding the limit kills the node's process and no other", "[limits]") {
  needs(kernel::Controller::memory);
  Rig rig;
  for (int i = 0; i < 2; ++i) rig.add({"print", "up", "gate", "../go", "use", "48", "gate", "../never"});
  rig.start(R"(
[[fault]]
id = "tight"
kind = "memory"
node = "n1"
limit = "16MiB"
)");
  rig.injector->catch_up();
  const auto folder = group_of(rig, kernel::Controller::memory, "n1");
  CHECK(in_force(folder, kernel::Controller::memory, 16 << 20));
  rig.wait_printed("up", 0);
  CHECK(rig.deployment->processes(0).size() == 1);
  rig.touch("go");
  rig.wait_end(0);
  rig.wait_printed("use = 0", 1);
  CHECK_FALSE(rig.printed("use", 0));
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.injected == 1);
  CHECK(outcome.detail == "n1 held to 16 MiB; the kernel killed 1 process because of it");
  CHECK_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("memory: a node above a new limit is killed at its next page; the limit ends with the fault", "[limits]") {
  needs(kernel::Controller::memory);
  Rig rig;
  rig.add({"gate", "../begin", "use", "48", "print", "grown", "gate", "../go", "use", "48", "gate", "../never"})
      .restart = config::Restart{1'000'000, 1};
  rig.start(R"(
[[fault]]
id = "tight"
kind = "memory"
node = "n1"
limit = "16MiB"
when = [ { log = "grown" } ]
until = [ { state = "started" } ]
)");
  rig.touch("begin");
  rig.wait_printed("grown");
  const pid_t first = rig.deployment->main_pid(0);
  rig.injector->catch_up();
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).fired_ns != 0; }));
  rig.injector->catch_up();
  REQUIRE(std::filesystem::remove(rig.path("begin")));
  rig.touch("go");
  REQUIRE(eventually([&] { return rig.deployment->main_pid(0) != first && rig.deployment->starts(0) == 2; }));
  // The fault ends when the node has started again. Then the node can use more memory again.
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).ended_ns.has_value(); }));
  rig.injector->catch_up();
  rig.touch("begin");
  REQUIRE(eventually([&] { return rig.lines("use = 0") == 3; }));
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.injected == 1);
}

TEST_CASE("memory: the limit ends when the kernel has killed one process, however late it needs memory", "[limits]") {
  needs(kernel::Controller::memory);
  Rig rig;
  rig.add({"fork", "print", "helper", "gate", "../go", "use", "48", ";", "gate", "../later", "use", "48", "print",
           "grown", "gate", "../never"});
  rig.start(R"(
[[fault]]
id = "tight"
kind = "memory"
node = "n1"
limit = "16MiB"
until = [ { state = "out-of-memory" } ]
)");
  rig.wait_printed("helper");
  rig.injector->catch_up();
  CHECK(in_force(group_of(rig, kernel::Controller::memory, "n1"), kernel::Controller::memory, 16 << 20));
  CHECK_FALSE(rig.injector->outcomes().at(0).ended_ns);
  rig.touch("go");  // only now does the helper need memory
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).ended_ns.has_value(); }));
  rig.injector->catch_up();
  rig.touch("later");
  rig.wait_printed("grown");
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.injected == 1);
  CHECK(outcome.no_effect.empty());
}

TEST_CASE("cpu: the node is throttled to its share", "[limits]") {
  needs(kernel::Controller::cpu);
  Rig rig;
  rig.add({"spin"});
  rig.start(R"(
[[fault]]
id = "slow"
kind = "cpu"
node = "n1"
share = 0.05
)");
  rig.injector->catch_up();
  const auto folder = group_of(rig, kernel::Controller::cpu, "n1");
  CHECK(in_force(folder, kernel::Controller::cpu, 50'000));
  CHECK(eventually([&] { return rig.injector->outcomes().at(0).injected >= 3; }));
  const pid_t pid = rig.deployment->main_pid(0);
  rig.injector->disarm();
  CHECK_FALSE(in_force(folder, kernel::Controller::cpu, 50'000));
  // with v2, the node's own folder is used
  CHECK(std::filesystem::exists(folder) == kernel::find_controller(kernel::Controller::cpu)->v2);
  CHECK(::kill(pid, 0) == 0);  // the process continues in the cgroup in which it was before
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.injected >= 3);
}

TEST_CASE("limits are refused where they cannot be set", "[limits]") {
  for (const std::string fault :
       {"kind = \"memory\"\nlimit = \"16MiB\"", "kind = \"cpu\"\nshare = 0.5", "kind = \"disk-full\""}) {
    Rig rig;
    rig.allow_attached = true;
    config::Node node;
    node.name = "n1";
    node.attach = config::Attach{"x.pid", {}, {}, {}};
    rig.config.nodes.push_back(node);
    const auto refused = rig.try_prepare("[[fault]]\nid = \"f\"\nnode = \"n1\"\n" + fault + "\n");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::environment);
    CHECK(refused.error().message.find("'n1' was not started by rose") != std::string::npos);
  }
  for (const std::string limited :
       {"", "[[fault]]\nid = \"m\"\nnode = \"n2\"\nkind = \"memory\"\nlimit = \"16MiB\"\n"}) {
    Rig rig;
    for (int i = 0; i < 2; ++i) rig.add({"print", "up"});
    const auto refused = rig.try_prepare(
        limited + "[[fault]]\nid = \"f\"\nnode = \"n1\"\nkind = \"crash\"\nwhen = [ { state = \"out-of-memory\" } ]\n");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::input);
    CHECK(refused.error().message.find("no fault of this schedule limits the memory of n1") != std::string::npos);
  }
  ::setenv("ROSE_MASK", "memory_controller", 1);
  Rig rig;
  rig.add({"print", "up"});
  const auto refused = rig.try_prepare("[[fault]]\nid = \"f\"\nnode = \"n1\"\nkind = \"memory\"\nlimit = \"16MiB\"\n");
  ::unsetenv("ROSE_MASK");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::environment);
  CHECK(refused.error().message.find("the cgroup controller 'memory'") != std::string::npos);
}

TEST_CASE("disk-full: nobody can write any more, not even root, and files are kept", "[disks]") {
  for (const std::string inside : {"", "data"}) {
    Rig rig;
    rig.add({"print", "up", "gate", "../never"});
    rig.add({"print", "up", "gate", "../never"});
    rig.prepare("[[fault]]\nid = \"full\"\nkind = \"disk-full\"\nnode = \"n1\"\n" +
                (inside.empty() ? "" : "path = \"" + inside + "\"\n") +
                "until = [ { state = \"crashed\", node = \"n2\" } ]\n");
    const std::string folder = rig.path("n1") + (inside.empty() ? "" : "/" + inside);
    CHECK(mounted(folder));
    // wait for the output now, because later output would not fit on the full disk
    for (const std::size_t node : {0, 1}) rig.wait_printed("up", node);
    if (inside.empty()) CHECK(error_of_write(folder + "/before") == 0);
    rig.begin();
    if (!inside.empty()) CHECK(error_of_write(rig.path("n1/beside")) == 0);
    int tries = 0;  // use only new files, because rewriting an existing one would first free its space
    REQUIRE(eventually([&] { return error_of_write(fmt::format("{}/tried.{}", folder, ++tries)) == ENOSPC; }));
    CHECK(error_of_write(rig.path("n2/there")) == 0);
    if (!inside.empty()) CHECK(error_of_write(rig.path("n1/beside")) == 0);
    REQUIRE(rig.deployment->signal(1, deploy::Scope::main, SIGKILL));
    REQUIRE(eventually([&] { return error_of_write(folder + "/after") == 0; }));
    const auto outcome = rig.finish().at(0);
    CHECK(outcome.fired);
    CHECK(outcome.ended_ns);
    CHECK(outcome.detail.find(inside.empty() ? "n1 is full with" : "n1/data is full with") == 0);
    CHECK_FALSE(mounted(folder));
    CHECK(rig.read("n1" + (inside.empty() ? "" : "/" + inside) + "/after") == std::string(1 << 16, 'x'));
    CHECK(rig.out(0) == "up\n");
  }
}

TEST_CASE("disk-full: a file system that is mounted in the folder is full, too, until the fault ends", "[disks]") {
  constexpr unsigned long kSize = 64UL << 20;
  Rig rig;
  rig.add({"print", "up", "gate", "../never"});
  rig.add({"print", "up", "gate", "../never"});
  rig.prepare(
      "[[fault]]\nid = \"full\"\nkind = \"disk-full\"\nnode = \"n1\"\n"
      "until = [ { state = \"crashed\", node = \"n2\" } ]\n");
  const std::string own = rig.path("n1") + "/own";
  REQUIRE(::mkdir(own.c_str(), 0755) == 0);
  REQUIRE(::mount("somebody", own.c_str(), "tmpfs", 0, "size=64m") == 0);
  const struct Unmount {
    std::string at;
    ~Unmount() { ::umount2(at.c_str(), MNT_DETACH); }
  } unmount{own};
  const auto room = [&] {
    struct statvfs status{};
    REQUIRE(::statvfs(own.c_str(), &status) == 0);
    return std::pair(status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize);
  };
  CHECK(room().first == kSize);
  for (const std::size_t node : {0, 1}) rig.wait_printed("up", node);  // later output would not fit on the full disk
  rig.begin();
  // One page remains free, because the file system is empty, and a size of 0 would mean that there is no limit.
  REQUIRE(eventually([&] { return room().second <= static_cast<unsigned long>(::getpagesize()); }));
  REQUIRE(rig.deployment->signal(1, deploy::Scope::main, SIGKILL));
  REQUIRE(eventually([&] { return room().first == kSize; }));
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.ended_ns);
}

TEST_CASE("the stack of the thread that met a limit is recorded", "[limits]") {
  needs(kernel::Controller::memory);
  struct Limit {
    std::string kind, keys;
    std::vector<std::string> steps;  // the steps after the fault has begun
    std::string why;
  };
  const std::vector<Limit> limits = {
      {"descriptors", "limit = 16\n", {"repeat", "30", "dup", ";"}, "needs a descriptor and gets none"},
      {"disk-full", "path = \"data\"\n", {"write", std::string(1 << 16, 'x')}, "needs disk space and gets none"},
      {"memory", "limit = \"16MiB\"\n", {"use", "48"}, "needs memory, and the kernel ends a process"},
  };
  for (const Limit& limit : limits) {
    INFO(limit.kind);
    Rig rig;
    rig.stacks = true;
    std::vector<std::string> steps = {"mkdir", "data", "create", "data/file", "print", "up", "gate", "../go"};
    steps.insert(steps.end(), limit.steps.begin(), limit.steps.end());
    rig.add(steps);
    rig.prepare(fmt::format("[[fault]]\nid = \"it\"\nkind = \"{}\"\nnode = \"n1\"\n{}", limit.kind, limit.keys));
    rig.wait_printed("up");
    const pid_t pid = rig.deployment->main_pid(0);
    rig.begin();
    REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).fired_ns != 0; }));
    rig.injector->catch_up();
    rig.touch("go");
    rig.wait_end();
    const auto outcome = rig.finish().at(0);
    REQUIRE(outcome.fired);
    INFO(rig.out(0));
    REQUIRE(!outcome.stacks.empty());
    for (const schedule::Stack& stack : outcome.stacks) {
      CHECK(stack.pid == pid);
      CHECK(stack.tid == pid);
      CHECK(stack.why == limit.why);
      CHECK(stack.ns >= outcome.fired_ns);
      const auto& frames = stack.frames;
      CHECK(std::any_of(frames.begin(), frames.end(), [](const auto& frame) { return frame.function == "main"; }));
    }
  }
}
