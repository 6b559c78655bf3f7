// Events, steps of the workload and faults in the order that a schedule gives.
#include <atomic>
#include <thread>

#include "inject_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

using Part = inject::Injector::StepPart;

const std::string kWritten = R"(
[[event]]
name = "written"
node = "n1"
when = [ { syscall = "openat", path = "*/log.1" } ]
)";
// An event whose condition includes the result of a call. Such a call cannot be held, because it has been executed when
// its result is known.
const std::string kWrittenWell = R"(
[[event]]
name = "written"
node = "n1"
when = [ { syscall = "openat", path = "*/log.1", result = "ok" } ]
)";
const std::string kDie = R"(
[[fault]]
id = "die"
kind = "crash"
node = "n1"
)";

schedule::OrderOutcome came(const inject::Injector& injector, const std::string& name, std::string* broken = nullptr) {
  std::string text;
  for (const auto& one : injector.order(text)) {
    if (broken != nullptr) *broken = text;
    if (one.name == name) return one;
  }
  FAIL("no " << name << " in the order");
  return {};
}

}  // namespace

TEST_CASE("a fault waits for the event and the step that precede it in the order", "[order]") {
  Rig rig;
  rig.add({"gate", rig.path("open"), "create", "log.1", "print", "written", "gate", rig.path("never")});
  rig.prepare("order = \"written * looked * die\"\n" + kWritten + kDie);
  rig.begin();
  std::atomic<bool> looked = false;
  std::thread step([&] {
    looked = rig.injector->step("looked", Part::begin).has_value();
    (void)rig.injector->step("looked", Part::end);
  });
  CHECK_FALSE(rig.injector->outcomes().at(0).fired);
  CHECK_FALSE(looked);
  rig.touch("open");
  step.join();
  CHECK(looked);
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  std::string broken;
  CHECK(came(*rig.injector, "written", &broken).came);
  CHECK(came(*rig.injector, "looked").kind == "step");
  CHECK(came(*rig.injector, "written").ns <= came(*rig.injector, "looked").ns);
  CHECK(came(*rig.injector, "looked").ns <= came(*rig.injector, "die").ns);
  CHECK(broken.empty());
}

TEST_CASE("steps wait for each other only where the order requires it", "[order]") {
  Rig rig;
  rig.add({"gate", rig.path("never")});
  rig.prepare("order = \"(one | two) * three * die\"\n" + kDie);
  rig.begin();
  CHECK(rig.injector->step("two", Part::begin).has_value());
  CHECK(rig.injector->step("one", Part::begin).has_value());
  std::atomic<bool> third = false;
  std::thread waits([&] { third = rig.injector->step("three", Part::begin).has_value(); });
  CHECK(rig.injector->step("two", Part::end).has_value());
  CHECK_FALSE(third);  // step `one` has begun, but has not ended
  CHECK(rig.injector->step("one", Part::end).has_value());
  waits.join();
  CHECK(third);
  CHECK_FALSE(rig.injector->outcomes().at(0).fired);
  CHECK(rig.injector->step("three", Part::end).has_value());
  REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).fired; }));
  const auto again = rig.injector->step("one", Part::begin);
  REQUIRE_FALSE(again.has_value());
  CHECK(again.error().message == "step 'one' has already been started: it happens once");
  const auto unknown = rig.injector->step("thre", Part::begin);
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().message == "the schedule's order has no step 'thre'");
  CHECK(unknown.error().hint == "did you mean 'three'?");
  rig.finish();
}

TEST_CASE("an event that occurs before its turn is reported", "[order]") {
  Rig rig;
  rig.add({"create", "log.1", "print", "written", "gate", rig.path("never")});
  rig.start("order = \"die * written\"\n" + kWrittenWell + kDie + "when = [ { log = \"written\" } ]\n");
  rig.wait_end();
  rig.finish();
  std::string broken;
  CHECK(came(*rig.injector, "written", &broken).came);
  CHECK(broken == "'written' came before 'die'");
}

TEST_CASE("a step that is not reached reports what it waited for, and continues when the run ends", "[order]") {
  Rig rig;
  rig.add({"gate", rig.path("never")});
  rig.start("order = \"written * looked * die\"\n" + kWritten + kDie);
  Result<void> step;
  std::thread waits([&] { step = rig.injector->step("looked", Part::begin); });
  rig.finish();
  waits.join();
  REQUIRE_FALSE(step.has_value());
  CHECK(step.error().kind == ErrorKind::cancelled);
  std::string broken;
  const auto written = came(*rig.injector, "written", &broken);
  CHECK_FALSE(written.came);
  CHECK(written.why_not.find("openat") != std::string::npos);
  CHECK(came(*rig.injector, "looked").why_not == "it comes after 'written', which did not come");
  CHECK(came(*rig.injector, "die").why_not == "it comes after 'looked', which did not come");
  CHECK(broken.empty());
}

TEST_CASE("an early event is held up to its timeout and reported as too early", "[order][block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "log.1", "print", "written", "gate", rig.path("never")});
  rig.prepare("order = \"looked * written\"\n" + kWritten + "timeout = \"300ms\"\n");
  rig.begin();
  rig.wait_printed("written");
  rig.finish();
  std::string broken;
  const auto written = came(*rig.injector, "written", &broken);
  CHECK(written.came);
  CHECK(written.held_ns >= 300'000'000);
  CHECK(broken == "'written' came before 'looked', which never happened");
}

TEST_CASE("an early event at a function is held up to its timeout", "[order][block]") {
  Rig rig;
  rig.add({"call", "print", "entered", "gate", rig.path("never")});
  rig.prepare(R"(
order = "looked * entered"
[[event]]
name = "entered"
node = "n1"
when = [ { function = "step_function" } ]
timeout = "300ms"
)");
  rig.begin();
  rig.wait_printed("entered");
  rig.finish();
  const auto entered = came(*rig.injector, "entered");
  CHECK(entered.came);
  CHECK(entered.held_ns >= 300'000'000);
}

TEST_CASE("an early event's call is held until its turn; other calls of the same kind continue", "[order][block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"create", "log.1", "print", "first", "threads", "1", "1", "create", "log.1", "print", "second", ";", "gate",
           rig.path("never")});
  rig.add({"create", "log.1", "create", "log.1", "print", "second", "gate", rig.path("never")});
  rig.prepare(R"(
order = "looked * written * die"
[[event]]
name = "written"
node = "n1"
when = [ { syscall = "openat", path = "*/log.1", count = 2 } ]
)" + kDie + "when = [ { log = \"second\" } ]\n");
  rig.begin();
  rig.wait_printed("first");
  rig.wait_printed("second", 1);
  REQUIRE(eventually([&] { return came(*rig.injector, "written").why_not.starts_with("it was about to happen"); }));
  CHECK_FALSE(rig.printed("second"));
  CHECK_FALSE(came(*rig.injector, "written").came);
  CHECK(rig.injector->step("looked", Part::begin).has_value());
  CHECK(rig.injector->step("looked", Part::end).has_value());
  rig.wait_end();
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.fired);
  CHECK(rig.lines("second") == 1);
  std::string broken;
  const auto written = came(*rig.injector, "written", &broken);
  CHECK(written.came);
  CHECK(written.held_ns > 0);
  CHECK(came(*rig.injector, "looked").ns <= written.ns);
  CHECK(broken.empty());
}

TEST_CASE("an early event's function is held until its turn, and no other thread is", "[order][block]") {
  Rig rig;
  const std::vector<std::string> steps = {"append", "calls", "threads", "3",   "1",    "call",           "print",
                                          "called", ";",     "print",   "all", "gate", rig.path("never")};
  rig.add(steps);
  rig.add(steps);
  rig.prepare(R"(
order = "looked * second * third * die"
[[event]]
name = "second"
node = "n1"
when = [ { function = "step_function", count = 2 } ]
[[event]]
name = "third"
node = "n1"
when = [ { function = "step_function", node = "n2", count = 3 } ]
)" + kDie + "when = [ { log = \"all\", node = \"n2\" } ]\n");
  rig.begin();
  REQUIRE(eventually([&] { return rig.lines("called") == 2 && rig.lines("called", 1) == 2; }));
  for (const char* name : {"second", "third"})
    REQUIRE(eventually([&] { return came(*rig.injector, name).why_not.starts_with("it was about to happen"); }));
  CHECK_FALSE(came(*rig.injector, "second").came);
  CHECK_FALSE(came(*rig.injector, "third").came);
  CHECK(rig.injector->step("looked", Part::begin).has_value());
  CHECK(rig.lines("called") == 2);
  CHECK(rig.injector->step("looked", Part::end).has_value());
  rig.wait_end();
  CHECK(rig.finish().at(0).fired);
  std::string broken;
  const auto second = came(*rig.injector, "second", &broken);
  const auto third = came(*rig.injector, "third");
  CHECK(second.came);
  CHECK(third.came);
  CHECK(second.ns <= third.ns);
  CHECK(second.held_ns > 0);
  CHECK(third.held_ns > 0);
  CHECK(broken.empty());
}

TEST_CASE("an event still held when the run ends reports what it waited for, and its thread continues",
          "[order][block]") {
  Rig rig;
  rig.leave_to_seccomp();
  rig.add({"append", "calls", "create", "log.1", "call", "gate", rig.path("never")});
  rig.start(R"(
order = "looked * (written | called) * die"
[[event]]
name = "written"
node = "n1"
when = [ { syscall = "openat", path = "*/log.1" } ]
[[event]]
name = "called"
node = "n1"
when = [ { function = "step_function" } ]
)" + kDie);
  rig.wait_printed("append calls = 0");
  REQUIRE(eventually([&] { return came(*rig.injector, "written").why_not.starts_with("it was about to happen"); }));
  CHECK(came(*rig.injector, "written").why_not ==
        "it was about to happen and waited for 'looked', which did not happen");
  rig.injector->disarm();
  rig.wait_printed("create log.1 = 0");
  rig.finish();
  CHECK_FALSE(came(*rig.injector, "called").came);
}
