// How the stack at which a fault hit the program is displayed: the frames of the program itself come first.
#include <catch2/catch.hpp>

#include "base/json.h"
#include "report/results.h"

using namespace rose;
using namespace rose::report;

namespace {

schedule::FaultOutcome hit() {
  schedule::FaultOutcome outcome;
  outcome.id = "bad-write";
  outcome.fired = outcome.armed = true;
  outcome.fired_ns = 1'250'000'000;
  outcome.node = "n1";
  outcome.pid = 41;
  outcome.tid = 44;
  outcome.detail = "write(/data/log)";
  schedule::Stack stack;
  stack.node = "n1";
  stack.thread = "appender";
  stack.pid = 41;
  stack.tid = 44;
  stack.why = "write(/data/log) fails with EIO";
  stack.frames = {{"__GI___libc_write", "write.c", 26, "/usr/lib/libc.so.6", 0xf8350},
                  {"Log::append(Entry const&)", "/src/raft/log.cc", 120, "/opt/kv", 0x1234},
                  {"Raft::step()", "/src/raft/raft.cc", 88, "/opt/kv", 0x2345},
                  {"", "", 0, "/opt/libplugin.so", 0x99},
                  {"", "", 0, "", 0x7f00},
                  {"start_thread", "", 0, "/usr/lib/libc.so.6", 0x27249}};
  outcome.stacks = {stack, stack};
  return outcome;
}

ReplayReport report_of(schedule::FaultOutcome outcome) {
  ReplayReport report;
  schedule::Fault fault;
  fault.id = outcome.id;
  fault.kind = schedule::FaultKind::crash;
  fault.node = "n1";
  report.schedule.faults.push_back(fault);
  schedule::RunResult missed, run;
  missed.number = 1;
  run.number = 2;
  run.verdict = schedule::Verdict::reproduced;
  run.faults.push_back(std::move(outcome));
  report.runs = {missed, run};
  return report;
}

}  // namespace

TEST_CASE("a shortened stack begins with the program's own frames") {
  CHECK(frames_in_short(hit()) == std::vector<std::string>{"Log::append(Entry const&) at log.cc:120",
                                                           "Raft::step() at raft.cc:88", "libplugin.so+0x99",
                                                           "2 frames more"});
  auto outcome = hit();
  auto& frames = outcome.stacks[0].frames;
  for (int i = 0; i < 10; ++i) frames.push_back(frames[1]);
  outcome.stacks[0].incomplete = "the stack is deeper than the 32768 bytes that were copied";
  const auto lines = frames_in_short(outcome);
  REQUIRE(lines.size() == 8);
  CHECK(lines[6] == "9 frames more");
  CHECK(lines[7] == "(the stack is deeper than the 32768 bytes that were copied)");
  // If all frames belong to libraries, they are shown.
  frames.resize(1);
  CHECK(frames_in_short(outcome).at(0) == "__GI___libc_write at write.c:26");
  outcome.stacks.clear();
  CHECK(frames_in_short(outcome).empty());
}

TEST_CASE("a stack is printed below its fault, and in --json for the first run that has one") {
  const auto report = report_of(hit());
  const auto table = fault_table(report.schedule, report.runs[1]);
  INFO(table);
  const auto fired = table.find("write(/data/log)"), first = table.find("Log::append(Entry const&) at log.cc:120"),
             second = table.find("Raft::step()");
  CHECK(fired != std::string::npos);
  CHECK(fired < first);
  CHECK(first < second);
  CHECK(second != std::string::npos);
  const auto json = Json::parse(replay_json(report));
  REQUIRE(json["stacks"].size() == 2);
  const auto& stack = json["stacks"][0];
  CHECK(stack["fault"] == "bad-write");
  CHECK(stack["node"] == "n1");
  CHECK(stack["thread"] == "appender");
  CHECK(stack["run"] == 2);
  REQUIRE(stack["frames"].size() == 6);
  CHECK(stack["frames"][1]["function"] == "Log::append(Entry const&)");
  CHECK(stack["frames"][1]["file"] == "/src/raft/log.cc");
  CHECK(stack["frames"][1]["line"] == 120);
  CHECK(stack["frames"][3]["function"].is_null());
  CHECK(stack["frames"][3]["line"].is_null());
}

TEST_CASE("a shortened Java stack begins with the program's methods, not the JDK's") {
  auto outcome = hit();
  outcome.stacks[0].frames = {{"__libc_write", "", 0, "/usr/lib/libc.so.6", 0xf8350},
                              {"java.io.FileOutputStream.writeBytes", "FileOutputStream.java", 0, "", 0},
                              {"org.x.Store.append", "Store.java", 40, "", 0},
                              {"org.x.Store.run", "Store.java", 9, "", 0},
                              {"java.lang.Thread.run", "Thread.java", 840, "", 0}};
  CHECK(frames_in_short(outcome) == std::vector<std::string>{"org.x.Store.append at Store.java:40",
                                                             "org.x.Store.run at Store.java:9", "1 frame more"});
}
