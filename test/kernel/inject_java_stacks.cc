// The Java frames in the stack of the thread that a fault hit: the methods are in order, with file and line, whatever
// the fault is.
#include <algorithm>
#include <string>
#include <vector>

#include "inject_rig.h"
#include "skip.h"

using namespace rose;
using namespace rose::test;

namespace {

const std::string kClasses = std::string(ROSE_PROGRAMS_DIR) + "/java";
const std::string kSource = std::string(ROSE_TEST_DIR) + "/programs/java/org/rose/test/Stacks.java";

// Adds one node, which is a JVM that executes a part repeatedly. If `threads` is 0, the main thread executes it.
config::Node& add_jvm(Rig& rig, const std::string& part, int times, int threads = 0,
                      std::vector<std::string> options = {}) {
  if (!std::filesystem::exists(kClasses + "/compiled"))
    skip_case("no Java compiler when this was built: apt-get install default-jdk-headless, then build again");
  if (std::system("java -version >/dev/null 2>&1") != 0) skip_case("no `java`: apt-get install default-jdk-headless");
  config::Node node;
  node.name = "n1";
  node.command = {"java", "-XX:+UseSerialGC"};
  node.command.insert(node.command.end(), options.begin(), options.end());
  for (const std::string& word : {std::string("-cp"), kClasses, std::string("org.rose.test.Stacks"), part,
                                  std::to_string(times), std::to_string(threads)})
    node.command.push_back(word);
  node.binaries = {"java"};
  rig.config.nodes.push_back(std::move(node));
  rig.stacks = true;
  return rig.config.nodes.back();
}

int line_of(const std::string& comment) {
  int number = 0;
  const std::string source = read_file(kSource).value();
  for (const auto& line : split(source, '\n')) {
    ++number;
    if (line.ends_with("// stack: " + comment)) return number;
  }
  FAIL("no line has " << comment);
  return 0;
}

std::string describe(const schedule::Stack& stack) {
  std::string text = fmt::format("{} {}/{} {}: {}\n", stack.node, stack.pid, stack.tid, stack.thread, stack.why);
  for (const auto& frame : stack.frames)
    text += fmt::format("  {} {}:{} {}+{:x}\n", frame.function, frame.file, frame.line, frame.module, frame.offset);
  return text + stack.incomplete;
}

// The program's own frames, in order, such as "put 17".
std::vector<std::string> own_frames(const schedule::Stack& stack) {
  std::vector<std::string> own;
  const std::string class_name = "org.rose.test.Stacks.";
  for (const auto& frame : stack.frames) {
    if (!frame.function.starts_with(class_name)) continue;
    CHECK(frame.file == "Stacks.java");
    own.push_back(fmt::format("{} {}", frame.function.substr(class_name.size()), frame.line));
  }
  return own;
}

std::string at(const std::string& method, const std::string& comment) {
  return fmt::format("{} {}", method, line_of(comment));
}

std::vector<std::string> first(std::vector<std::string> all, std::size_t most) {
  all.resize(std::min(all.size(), most));
  return all;
}

schedule::FaultOutcome outcome_of(Rig& rig, const std::string& schedule) {
  rig.start(schedule);
  rig.wait_end();
  auto outcome = rig.finish().at(0);
  INFO(outcome.why_not << rig.out());
  REQUIRE(outcome.fired);
  return outcome;
}

bool outermost_is_a_thread(const schedule::Stack& stack) {
  return !stack.frames.empty() && stack.frames.back().function == "java.lang.Thread.run";
}

}  // namespace

TEST_CASE("the stack of a JVM's failed call has its methods and lines in 20 of 20 cases", "[java]") {
  const std::vector<std::string> expected{at("put", "put"), at("append", "append"), at("write", "write"),
                                          at("part", "part")};
  std::size_t right = 0;
  for (int turn = 0; turn < 5; ++turn) {
    Rig rig;
    add_jvm(rig, "write", 20, 4);
    const auto outcome = outcome_of(rig, fmt::format(R"(
[[fault]]
id = "it"
kind = "syscall"
node = "n1"
syscall = "write"
path = "*/lines.*"
error = "ENOSPC"
count = {}
times = 4
)",
                                                     3 + 7 * turn));
    REQUIRE(outcome.stacks.size() == 4);
    for (const auto& stack : outcome.stacks) {
      INFO(describe(stack));
      CHECK(stack.incomplete == "");
      CHECK(first(own_frames(stack), 4) == expected);
      CHECK(stack.thread.starts_with("worker-"));
      // The frame of the C library is still the innermost one, before the Java frames.
      REQUIRE(!stack.frames.empty());
      CHECK(stack.frames[0].module.find("libc") != std::string::npos);
      CHECK(outermost_is_a_thread(stack));
      CHECK(std::none_of(stack.frames.begin(), stack.frames.end(),
                         [](const auto& frame) { return frame.function.find("$$Lambda") != std::string::npos; }));
      right += first(own_frames(stack), 4) == expected ? 1 : 0;
    }
  }
  CHECK(right == 20);
}

TEST_CASE("the stack of a failed call on a JVM's main thread is complete", "[java]") {
  Rig rig;
  add_jvm(rig, "write", 5, 0, {"-Xint"});
  const auto outcome = outcome_of(rig,
                                  "[[fault]]\nid = \"it\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = "
                                  "\"write\"\npath = \"*/lines.0\"\nerror = \"EIO\"\ncount = 2\n");
  REQUIRE(outcome.stacks.size() == 1);
  INFO(describe(outcome.stacks[0]));
  CHECK(own_frames(outcome.stacks[0]).size() == 5);
  CHECK(outcome.stacks[0].frames.back().function == "org.rose.test.Stacks.main");
}

TEST_CASE("the stack of a thread that is held in a call is read while its JVM makes such calls", "[java]") {
  Rig rig;
  add_jvm(rig, "write", 5, 0, {"-Xmx32m"});
  // A JVM opens files of its cgroup whenever it checks its memory, even in the thread that prints a stack.
  const auto outcome = outcome_of(rig,
                                  "[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"n1\"\nbefore = { syscall = "
                                  "\"write\", path = \"*/lines.0\", count = 2 }\n"
                                  "when = [ { syscall = \"openat\", path = \"*/lines.0\" } ]\n");
  REQUIRE(outcome.stacks.size() == 1);
  INFO(describe(outcome.stacks[0]));
  CHECK(outcome.stacks[0].incomplete == "");
  CHECK(own_frames(outcome.stacks[0]).size() == 5);
}

TEST_CASE("stacks of a crash, a pause and an exception at a method of a JVM are read", "[java]") {
  const std::string place = "function = \"org.rose.test.Stacks.step\"";
  const std::vector<std::string> below{at("outer", "outer"), at("steps", "steps")};
  SECTION("a crash") {
    Rig rig;
    add_jvm(rig, "steps", 200, 3);
    const auto outcome = outcome_of(
        rig, "[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { " + place + ", count = 123 } ]\n");
    REQUIRE(outcome.stacks.size() == 1);
    INFO(describe(outcome.stacks[0]));
    const auto own = own_frames(outcome.stacks[0]);
    REQUIRE(own.size() >= 3);
    CHECK(own[0].starts_with("step "));
    CHECK(std::vector<std::string>{own[1], own[2]} == below);
    CHECK(outcome.stacks[0].frames[0].function == "org.rose.test.Stacks.step");  // so there is no frame of the agent
    CHECK(outermost_is_a_thread(outcome.stacks[0]));
  }
  SECTION("a pause") {
    Rig rig;
    add_jvm(rig, "steps", 200, 2);
    const auto outcome =
        outcome_of(rig, "[[fault]]\nid = \"it\"\nkind = \"pause\"\nnode = \"n1\"\nduration = \"300ms\"\nwhen = [ { " +
                            place + ", count = 50 } ]\n");
    CHECK(rig.printed("done"));
    REQUIRE(!outcome.stacks.empty());
    INFO(describe(outcome.stacks[0]));
    const auto own = own_frames(outcome.stacks[0]);
    REQUIRE(own.size() >= 3);
    CHECK(std::vector<std::string>{own[1], own[2]} == below);
  }
  SECTION("exceptions at a line") {
    Rig rig;
    add_jvm(rig, "steps", 50, 2);
    const auto outcome = outcome_of(rig, fmt::format("[[fault]]\nid = \"it\"\nkind = \"exception\"\nnode = "
                                                     "\"n1\"\nthrows = \"java.lang.IllegalStateException\"\n"
                                                     "function = \"Stacks.outer\"\nline = {}\ncount = 30\ntimes = 3\n",
                                                     line_of("outer")));
    CHECK(rig.lines("caught injected by rose") == 3);
    REQUIRE(outcome.stacks.size() == 3);
    for (const auto& stack : outcome.stacks) {
      INFO(describe(stack));
      CHECK(first(own_frames(stack), 2) == below);
    }
  }
  SECTION("a stack deeper than is recorded") {
    Rig rig;
    add_jvm(rig, "deep", 10, 1);
    const auto outcome = outcome_of(
        rig, "[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ { " + place + ", count = 5 } ]\n");
    REQUIRE(outcome.stacks.size() == 1);
    CHECK(outcome.stacks[0].frames.size() == 96);
    CHECK(outcome.stacks[0].incomplete.find("deeper than 96") != std::string::npos);
  }
}

TEST_CASE("a thread inside the JVM itself does not delay the others", "[java]") {
  Rig rig;
  // The JVM's own loader reads this class.
  add_jvm(rig, "late", 1, 0, {"-Xbootclasspath/a:" + kClasses});
  const auto outcome = outcome_of(rig,
                                  "[[fault]]\nid = \"it\"\nkind = \"syscall\"\nnode = \"n1\"\nsyscall = "
                                  "\"openat\"\npath = \"*/Stacks$Late.class\"\ndelay = \"10ms\"\n");
  CHECK(rig.printed("late 7"));
  CHECK(rig.printed("done"));
  REQUIRE(outcome.stacks.size() == 1);
  INFO(describe(outcome.stacks[0]));
  CHECK(outcome.stacks[0].incomplete.find("the thread was inside the JVM") != std::string::npos);
  CHECK(std::any_of(outcome.stacks[0].frames.begin(), outcome.stacks[0].frames.end(),
                    [](const auto& frame) { return frame.module.ends_with("libjvm.so"); }));
}
