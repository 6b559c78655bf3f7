// A thread waits at a call: the one that was asked for, and nobody else; it goes on when its time has come.
#include <signal.h>

#include "inject_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

// Three threads that sync the same file, and say so; "all" when they have.
std::vector<std::string> three_threads(std::string file) {
  return {"append", std::move(file), "threads", "3", "1", "fsync", "print", "synced", ";", "print", "all", "gate", "../never"};
}

bool stands_in(const schedule::FaultOutcome& held, const std::string& call) {
  return read_file(fmt::format("/proc/{}/task/{}/syscall", held.pid, held.tid)).value_or("").starts_with(call + " ");
}

}  // namespace

TEST_CASE("the nth thread waits ahead of its call until a condition is met; the others go on", "[block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add(three_threads("log.1"));
  rig.add(three_threads("log.1"));
  rig.add({"gate", "../go", "print", "went", "gate", "../never"});
  rig.start(R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { syscall = "fsync", path = "*/log.1" }
count = 2
until = [ { log = "went", node = "n3" } ]
)");
  REQUIRE(eventually([&] { return rig.lines("synced") == 2; }));
  rig.wait_said("all", 1);
  CHECK(rig.lines("synced", 1) == 3);
  const auto held = rig.injector->outcomes().at(0);
  CHECK(held.fired);
  CHECK(held.ended_ns == 0);
  CHECK(held.injected == 1);
  CHECK(held.pid == rig.deployment->main_pid(0));
  CHECK(held.tid != held.pid);
  CHECK(stands_in(held, "74"));
  CHECK_FALSE(rig.said("all"));
  rig.touch("go");
  rig.wait_said("all");
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(outcome.seen == 2);
  CHECK(outcome.injected == 1);
  CHECK(outcome.ended_ns > outcome.fired_ns);
  CHECK(outcome.detail == "a thread waits ahead of fsync(" + rig.path("n1/log.1") + ")");
}

TEST_CASE("a wait has an end: its duration, whatever it waits for, and the run's", "[block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add(three_threads("log.1"));
  rig.add(three_threads("log.1"));
  rig.start(R"(
[[fault]]
id = "short"
kind = "block"
node = "n1"
at = { syscall = "fsync", count = 3 }
duration = "200ms"
until = [ { log = "never", node = "n2" } ]
[[fault]]
id = "long"
kind = "block"
node = "n2"
at = { syscall = "fsync" }
duration = "600s"
)");
  rig.wait_said("all", 0);
  REQUIRE(eventually([&] { return rig.lines("synced", 1) == 2; }));
  rig.injector->disarm();
  const auto outcomes = rig.injector->outcomes();
  rig.wait_said("all", 1);  // let go as the run ended
  rig.finish();
  CHECK(outcomes.at(0).ended_ns - outcomes.at(0).fired_ns == 200 * 1'000'000);
  CHECK(outcomes.at(0).detail.find("let go after 200ms: what it waited for had not come") != std::string::npos);
  CHECK(outcomes.at(1).fired);
  CHECK(outcomes.at(1).ended_ns > outcomes.at(1).fired_ns);
  CHECK(outcomes.at(1).detail.find("let go") == std::string::npos);
}

TEST_CASE("a process whose thread waits dies as any other, and the call is never made", "[block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "log.1", "threads", "1", "1", "rename", "log.1", "log.2", ";"});
  rig.start(R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { syscall = "rename" }
duration = "600s"
[[fault]]
id = "die"
kind = "crash"
node = "n1"
after = ["wait"]
)");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  CHECK(rig.exists("n1/log.1"));
  CHECK_FALSE(rig.exists("n1/log.2"));
}

TEST_CASE("a call that nobody makes, and one that the kernel's own backend cannot hold", "[block]") {
  const std::string never = R"(
[[fault]]
id = "wait"
kind = "block"
node = "n1"
at = { syscall = "fsync", path = "*/log.1" }
count = 2
duration = "1s"
)";
  {
    Rig rig;
    rig.leave_to_seccomp();
    rig.add({"create", "log.1", "fsync", "create", "log.2", "fsync", "fdatasync", "print", "done"});
    rig.start(never);
    rig.wait_end();
    const auto outcome = rig.finish().at(0);
    CHECK_FALSE(outcome.fired);
    CHECK(outcome.why_not == "1 matching calls of fsync(*/log.1) were seen on n1 of the 2 asked for");
  }
  Rig rig;
  rig.config.inject.syscall = config::Backend::override_return;
  rig.add({"print", "done"});
  const auto refused = rig.try_prepare(never);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::input);
  CHECK(refused.error().message == "the override backend for syscall faults cannot be used: fault 'wait': a call that is held waits in userspace");
}
