// The stack of the thread that a fault hit: the functions are in order, with file and line, for every kind of fault,
// and however the program was built.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "inject_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

const std::string kSource = std::string(ROSE_TEST_DIR) + "/programs/stack_victim.cc";

// The number of the source line that contains `comment`.
int line_of(const std::string& comment) {
  std::ifstream file(kSource);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.ends_with("// stack: " + comment)) return number;
  }
  FAIL("no line has " << comment);
  return 0;
}

// Adds one node, which writes `times` lines on each of its threads.
config::Node& add_victim(Rig& rig, int threads, int times, const std::string& program = "stack_victim") {
  config::Node node;
  node.name = "n1";
  const auto binary = std::string(ROSE_PROGRAMS_DIR) + "/" + program;
  node.command = {binary, std::to_string(threads), std::to_string(times), "."};
  node.binaries = {binary};
  rig.config.nodes.push_back(std::move(node));
  rig.stacks = true;
  return rig.config.nodes.back();
}

std::string describe(const schedule::Stack& stack) {
  std::string text = fmt::format("{} {}/{} {}: {}\n", stack.node, stack.pid, stack.tid, stack.thread, stack.why);
  for (const auto& frame : stack.frames)
    text += fmt::format("  {} {}:{} {}+{:x}\n", frame.function, frame.file, frame.line, frame.module, frame.offset);
  return text + stack.incomplete;
}

// The victim's own frames, innermost first.
std::vector<schedule::Frame> own_frames(const schedule::Stack& stack) {
  std::vector<schedule::Frame> own;
  for (const auto& frame : stack.frames) {
    if (frame.module.find("/programs/stack_") != std::string::npos) own.push_back(frame);
  }
  return own;
}

struct ExpectedFrame {
  std::string function;
  std::string line;  // the comment on the expected line of the source; "": any line
};

void check_frames(const schedule::Stack& stack, const std::vector<ExpectedFrame>& expected, bool lines = true) {
  INFO(describe(stack));
  const auto own = own_frames(stack);
  REQUIRE(own.size() >= expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(own[i].function == expected[i].function);
    if (!lines) continue;
    CHECK(own[i].file.ends_with("stack_victim.cc"));
    if (!expected[i].line.empty()) CHECK(own[i].line == line_of(expected[i].line));
  }
}

const std::vector<ExpectedFrame> kEven = {{"stacks::put_line", "write"},
                                          {"stacks::Store::append(std::string const&)", "put_line"},
                                          {"stacks::even_way(stacks::Store&, int)", "even"},
                                          {"stacks::work(int, int, std::string const&)", "work"},
                                          {"main", ""}};

schedule::FaultOutcome one_outcome(Rig& rig, const std::string& schedule) {
  rig.start(schedule);
  rig.wait_end();
  auto outcome = rig.finish().at(0);
  INFO(outcome.why_not << rig.out());
  REQUIRE(outcome.fired);
  return outcome;
}

const std::string kWriteFails = R"(
[[fault]]
id = "it"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/lines.0"
error = "ENOSPC"
count = 3
)";

}  // namespace

TEST_CASE("the stack of a failed call has inlined functions and needs no frame pointers") {
  Rig rig;
  add_victim(rig, 1, 5);
  const auto outcome = one_outcome(rig, kWriteFails);
  CHECK(rig.lines("0 fails: No space left on device") == 1);
  REQUIRE(outcome.stacks.size() == 1);
  const auto& stack = outcome.stacks[0];
  check_frames(stack, kEven);
  INFO(describe(stack));
  CHECK(stack.node == "n1");
  CHECK(stack.thread == "stack_victim");
  CHECK(stack.pid == outcome.pid);
  CHECK(stack.tid == outcome.tid);
  CHECK(stack.incomplete == "");
  CHECK(stack.why == "write(" + rig.path("n1/lines.0") + ") fails with ENOSPC");
  CHECK(stack.frames.at(0).module.find("libc") != std::string::npos);
  CHECK(stack.frames.back().function == "_start");
}

TEST_CASE("stacks are kept for the first few of many failed calls only") {
  Rig rig;
  add_victim(rig, 1, 20);
  const auto outcome = one_outcome(rig, kWriteFails + "times = \"forever\"\n");
  CHECK(outcome.injected == 18);
  REQUIRE(outcome.stacks.size() == 4);
  for (const auto& stack : outcome.stacks) check_frames(stack, kEven);
}

TEST_CASE("the stack of a failed call is complete for a stripped program with a debug file") {
  Rig rig;
  add_victim(rig, 1, 5, "stack_apart");
  const auto outcome = one_outcome(rig, kWriteFails);
  REQUIRE(outcome.stacks.size() == 1);
  check_frames(outcome.stacks[0], kEven);
}

TEST_CASE("the stack of a failed call reports the missing symbols of a stripped program") {
  Rig rig;
  add_victim(rig, 1, 5, "stack_bare");
  const auto outcome = one_outcome(rig, kWriteFails);
  REQUIRE(outcome.stacks.size() == 1);
  INFO(describe(outcome.stacks[0]));
  CHECK(own_frames(outcome.stacks[0]).size() >= 4);
  CHECK(outcome.stacks[0].incomplete.find("debug symbols") != std::string::npos);
}

TEST_CASE("the stack of a failed call is right in 50 of 50 runs of a multithreaded program") {
  for (int turn = 0; turn < 50; ++turn) {
    Rig rig;
    add_victim(rig, 8, 40);
    const int victim = turn % 8;
    auto schedule = kWriteFails;
    schedule.replace(schedule.find("lines.0"), 7, fmt::format("lines.{}", victim));
    const auto outcome = one_outcome(rig, schedule);
    REQUIRE(outcome.stacks.size() == 1);
    auto expected = kEven;
    expected.pop_back();
    if (victim % 2 == 1) expected[2] = {"stacks::odd_way(stacks::Store&, int)", "odd"};
    CHECK(outcome.stacks[0].tid == outcome.tid);
    CHECK((outcome.stacks[0].tid == outcome.stacks[0].pid) == (victim == 0));
    check_frames(outcome.stacks[0], expected);
  }
}

TEST_CASE("the stack of a delayed call is recorded") {
  Rig rig;
  rig.leave_to_seccomp();
  add_victim(rig, 1, 5);
  const auto outcome = one_outcome(rig, R"(
[[fault]]
id = "it"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/lines.0"
delay = "50ms"
)");
  REQUIRE(outcome.stacks.size() == 1);
  check_frames(outcome.stacks[0], kEven);
  CHECK(outcome.stacks[0].why.ends_with(" waits 50ms"));
}

TEST_CASE("the stack at a crash at a function's entry is recorded") {
  Rig rig;
  add_victim(rig, 4, 40);
  const auto outcome = one_outcome(rig, R"(
[[fault]]
id = "it"
kind = "crash"
node = "n1"
when = [ { function = "checkpoint", count = 7 } ]
)");
  REQUIRE(outcome.stacks.size() == 1);
  auto expected = std::vector<ExpectedFrame>{
      {"checkpoint", ""}, {"stacks::even_way(stacks::Store&, int)", ""}, {kEven[3].function, "work"}};
  check_frames(outcome.stacks[0], expected);
  CHECK(outcome.stacks[0].tid == outcome.tid);
  CHECK(outcome.stacks[0].why == "gets SIGKILL at the entry of checkpoint on n1");
}

TEST_CASE("the stacks at a crash before a call and at one when a call returns are recorded") {
  for (const char* when : {"before = { syscall = \"write\", path = \"*/lines.0\", count = 3 }\n",
                           "when = [ { syscall = \"write\", path = \"*/lines.0\", count = 3 } ]\n"}) {
    Rig rig;
    add_victim(rig, 4, 40);
    const auto outcome =
        one_outcome(rig, std::string("[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"n1\"\n") + when);
    REQUIRE(outcome.stacks.size() == 1);
    check_frames(outcome.stacks[0], kEven);
    INFO(describe(outcome.stacks[0]));
    CHECK(outcome.stacks[0].why.starts_with("gets SIGKILL"));
  }
}

TEST_CASE("the stacks at a pause at a function and at one before a call are recorded") {
  for (const char* when : {"when = [ { function = \"checkpoint\", count = 3 } ]\n",
                           "before = { syscall = \"write\", path = \"*/lines.0\", count = 3 }\n"}) {
    Rig rig;
    add_victim(rig, 1, 5);
    const auto outcome = one_outcome(
        rig, std::string("[[fault]]\nid = \"it\"\nkind = \"pause\"\nnode = \"n1\"\nduration = \"100ms\"\n") + when);
    REQUIRE(outcome.stacks.size() == 1);
    INFO(describe(outcome.stacks[0]));
    const auto own = own_frames(outcome.stacks[0]);
    REQUIRE(own.size() >= 3);
    CHECK(own[0].function == (std::string(when).starts_with("when") ? "checkpoint" : kEven[0].function));
    CHECK(own.back().function == "_start");
  }
}

// Before rose kills the process, it waits at most 20 ms until the thread has stopped. If the machine is too busy for
// that, the stack says so. At least one of the attempts must succeed.
TEST_CASE("the stack of the running thread is recorded at a crash at a given time") {
  bool seen = false;
  for (int tries = 0; tries < 60 && !seen; ++tries) {
    Rig rig;
    rig.stacks = true;
    rig.add({"print", "up", "spin"});
    rig.prepare("[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { elapsed = \"100ms\" } ]\n");
    rig.wait_printed("up");
    rig.begin();
    rig.wait_end();
    const auto outcome = rig.finish().at(0);
    REQUIRE(outcome.fired);
    REQUIRE(outcome.stacks.size() == 1);
    INFO(describe(outcome.stacks[0]));
    const auto& frames = outcome.stacks[0].frames;
    seen = outcome.stacks[0].incomplete.empty();
    CHECK((seen || outcome.stacks[0].incomplete.starts_with("the thread was running")));
    if (seen)
      CHECK(std::any_of(frames.begin(), frames.end(), [](const auto& frame) {
        return frame.function == "main" || frame.function.ends_with("spin");
      }));
  }
  CHECK(seen);
}

TEST_CASE("no stacks are recorded unless requested") {
  Rig rig;
  add_victim(rig, 1, 5);
  rig.stacks = false;
  CHECK(one_outcome(rig, kWriteFails).stacks.empty());
}
