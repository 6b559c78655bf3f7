#include "explain/stacks_before.h"

#include <catch2/catch.hpp>

using namespace rose;

namespace {

schedule::Fault kill_at_return() {
  schedule::Fault fault;
  fault.id = "kill";
  fault.kind = schedule::FaultKind::crash;
  fault.node = "n1";
  schedule::Condition log, written;
  log.kind = schedule::ConditionKind::log;
  log.log = "leader";
  written.kind = schedule::ConditionKind::syscall;
  written.call.syscall = "write";
  written.call.path = "*/log";
  written.result = "ok";
  written.count = 3;
  fault.when = {log, written};
  return fault;
}

schedule::Frame native(const std::string& function) { return {function, "", 0, "libc.so.6", 1}; }
schedule::Frame java(const std::string& function) { return {function, "Log.java", 7, "", 0}; }
const schedule::Frame kUnnamed{"", "", 0, "", 140'000};

explain::Run failing_with(std::vector<schedule::Frame> frames) {
  explain::Run run;
  run.group = explain::Group::failing;
  schedule::FaultOutcome outcome;
  outcome.id = "kill";
  outcome.node = "n1";
  outcome.armed = outcome.fired = true;
  schedule::Stack stack;
  stack.frames = std::move(frames);
  stack.why = "gets SIGKILL";
  stack.incomplete = "frames have no name";
  outcome.stacks = {stack};
  run.faults = {outcome};
  return run;
}

const auto is_java = [](const std::string& node) { return node == "n1"; };

}  // namespace

TEST_CASE("a kill at the return of a call in a JVM is moved before the call to record Java frames", "[explain]") {
  schedule::Schedule schedule;
  schedule.faults = {kill_at_return()};
  const std::vector<explain::Run> runs = {failing_with({native("write"), kUnnamed})};
  const auto before = explain::before_calls(schedule, runs, is_java);
  REQUIRE(before);
  const schedule::Fault& fault = before->faults.at(0);
  REQUIRE(fault.before);
  CHECK(fault.before->syscall == "write");
  CHECK(fault.before->path == "*/log");
  CHECK(fault.before_count == 3);
  REQUIRE(fault.when.size() == 1);
  CHECK(fault.when[0].log == "leader");
}

TEST_CASE("no run for Java frames is made that cannot find any", "[explain]") {
  schedule::Schedule schedule;
  schedule.faults = {kill_at_return()};
  std::vector<explain::Run> runs = {failing_with({native("write"), kUnnamed})};
  const auto wanted = [&] { return explain::before_calls(schedule, runs, is_java).has_value(); };
  CHECK(wanted());
  SECTION("the node runs no JVM") { runs[0].faults[0].node = "n2"; }
  SECTION("the frames are known") { runs = {failing_with({native("write"), java("Log.append")})}; }
  SECTION("only a run without the bug lacks them") { runs[0].group = explain::Group::near; }
  SECTION("the thread of another node met the condition") { schedule.faults[0].when[1].node = "n2"; }
  SECTION("the condition is a log line") { schedule.faults[0].when.pop_back(); }
  SECTION("the fault comes before a call already") { schedule.faults[0].before = schedule.faults[0].when[1].call; }
  SECTION("the fault has no stack of one thread") { schedule.faults[0].kind = schedule::FaultKind::partition; }
  CHECK_FALSE(wanted());
}

TEST_CASE("Java frames are taken over only below the same native functions", "[explain]") {
  explain::Run run = failing_with({native("write"), native("write0"), kUnnamed, kUnnamed});
  const auto complete = [&](std::vector<schedule::Frame> frames, bool fired = true) {
    explain::Run other = failing_with(std::move(frames));
    other.faults[0].stacks[0].incomplete.clear();
    other.faults[0].fired = fired;
    explain::complete_stacks(other.faults, run.faults);
    return run.faults[0].stacks[0];
  };
  CHECK(complete({native("write"), native("flush"), java("Log.flush")}).frames.size() == 4);
  CHECK(complete({native("write"), native("write0")}).frames.size() == 4);
  CHECK(complete({native("write"), native("write0"), java("Log.append")}, false).frames.size() == 4);
  const schedule::Stack done = complete({native("write"), native("write0"), java("Log.append"), java("Log.main")});
  REQUIRE(done.frames.size() == 4);
  CHECK(done.frames[2].function == "Log.append");
  CHECK(done.incomplete.empty());
  CHECK(done.why.starts_with("gets SIGKILL; the Java frames are"));
}
