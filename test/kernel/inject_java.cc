// Locations in methods of a real JVM. Conditions are met and faults occur exactly where and when the schedule requires.
#include <algorithm>
#include <string>
#include <vector>

#include "inject_rig.h"
#include "skip.h"
#include "state_of.h"

using namespace rose;
using namespace rose::test;

namespace {

const std::string kClasses = std::string(ROSE_PROGRAMS_DIR) + "/java";
const std::string kSource = std::string(ROSE_TEST_DIR) + "/programs/java/org/rose/test/Victim.java";

std::string java() {
  const char* chosen = std::getenv("ROSE_TEST_JAVA");
  return chosen != nullptr ? chosen : "java";
}

void need_java() {
  if (!std::filesystem::exists(kClasses + "/compiled"))
    skip_case("no Java compiler when this was built: apt-get install default-jdk-headless, then build again");
  const std::string tried = fmt::format("{} -version >/dev/null 2>&1", java());
  if (std::system(tried.c_str()) != 0) skip_case("no `java`: apt-get install default-jdk-headless");
}

// Adds one node, which is a JVM that executes a part repeatedly, on several threads.
config::Node& add_jvm(Rig& rig, const std::string& part, int times, int threads = 1,
                      std::vector<std::string> options = {}) {
  need_java();
  config::Node node;
  node.name = fmt::format("n{}", rig.config.nodes.size() + 1);
  node.command = {java(), "-XX:+UseSerialGC"};
  node.command.insert(node.command.end(), options.begin(), options.end());
  for (const std::string& word : {std::string("-cp"), kClasses, std::string("org.rose.test.Victim"), part,
                                  std::to_string(times), std::to_string(threads)})
    node.command.push_back(word);
  node.binaries = {java()};
  rig.config.nodes.push_back(std::move(node));
  return rig.config.nodes.back();
}

std::string crash(const std::string& when) {
  return fmt::format("[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"n1\"\nwhen = [ {} ]\n", when);
}

std::string exception(const std::string& rest) {
  return "[[fault]]\nid = \"it\"\nkind = \"exception\"\nnode = \"n1\"\nthrows = \"java.io.IOException\"\n" + rest;
}

std::string last_line(const Rig& rig) {
  std::string last;
  for (const auto& line : split(rig.out(), '\n'))
    if (!line.empty()) last = line;
  return last;
}

// The number of the source line that contains `comment`.
int line_of(const std::string& comment) {
  int number = 0;
  const std::string source = read_file(kSource).value();
  for (const auto& line : split(source, '\n')) {
    ++number;
    if (line.find(comment) != std::string::npos) return number;
  }
  FAIL("no line with " << comment);
  return 0;
}

// The numbers in lines such as "caught 12 java.io.IOException: injected by rose".
std::vector<int> caught(const Rig& rig) {
  std::vector<int> all;
  for (const auto& line : split(rig.out(), '\n'))
    if (line.starts_with("caught ")) all.push_back(std::stoi(std::string(line.substr(7))));
  return all;
}

// Checks that the fault of the schedule ends the JVM, and that `last` is the last line that the JVM printed.
void ends_with_line(const std::string& last, const std::string& part, int times, const std::string& schedule,
                    std::vector<std::string> options = {}) {
  Rig rig;
  add_jvm(rig, part, times, 1, std::move(options));
  rig.start(schedule);
  rig.wait_end();
  const auto outcomes = rig.finish();
  INFO(outcomes.at(0).why_not);
  CHECK(outcomes.at(0).fired);
  CHECK(last_line(rig) == last);
}

const std::vector<std::vector<std::string>> kModes{
    {"-Xint"},
    {"-XX:TieredStopAtLevel=1"},
    {"-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileOnly=org.rose.test.Victim::*"},
    {}};

}  // namespace

TEST_CASE("a JVM is killed at the nth entry of a method, interpreted or compiled", "[java]") {
  const auto mode = GENERATE(range(std::size_t{0}, std::size_t{4}));
  INFO(fmt::format("{}", fmt::join(kModes[mode], " ")));
  for (const int n : {1, 2, 37}) {
    Rig rig;
    add_jvm(rig, "step", 100, 1, kModes[mode]);
    rig.start(crash(fmt::format("{{ function = \"org.rose.test.Victim.step\", count = {} }}", n)));
    rig.wait_end();
    const auto outcomes = rig.finish();
    INFO(outcomes.at(0).why_not);
    CHECK(outcomes.at(0).fired);
    CHECK(last_line(rig) == (n == 1 ? "" : fmt::format("step {}", n - 1)));
    CHECK_FALSE(rig.printed(fmt::format("step {}\n", n)));
  }
}

TEST_CASE("entries of a method whose callers are compiled are counted exactly", "[java]") {
  ends_with_line("step 50000", "quiet", 60'000, crash("{ function = \"Victim.step\", count = 50001 }"));
}

TEST_CASE("entries by several threads are counted for the node as a whole", "[java]") {
  Rig rig;
  add_jvm(rig, "step", 100, 8);
  rig.start(
      "[[fault]]\nid = \"it\"\nkind = \"exception\"\nnode = \"n1\"\nthrows = \"java.lang.IllegalStateException\"\n"
      "function = \"Victim.step\"\ncount = 800\n");
  rig.wait_end();
  const auto outcomes = rig.finish();
  INFO(rig.out());
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(0).injected == 1);
}

TEST_CASE("a JVM thread is held at a method's entry or a line; other threads and GC continue", "[java][block]") {
  const std::string place = GENERATE(std::string("function = \"Victim.store\""),
                                     fmt::format("function = \"Victim.store\", line = {}", line_of("behind the step")));
  Rig rig;
  add_jvm(rig, "store", 50, 2);
  rig.start("[[fault]]\nid = \"it\"\nkind = \"block\"\nnode = \"n1\"\nduration = \"600s\"\ncount = 10\nat = { " +
            place + " }\n");
  INFO(rig.out());
  REQUIRE(eventually([&] { return rig.lines("stored 49") == 1; }, 90 * kSecond));
  const auto held = rig.injector->outcomes().at(0);
  CHECK(held.fired);
  CHECK(eventually([&] { return state_of(held.tid) == 't'; }));
  CHECK(rig.lines("stored 49") == 1);
  rig.injector->disarm();
  rig.wait_end();
  CHECK(rig.lines("stored 49") == 2);
  CHECK(rig.finish().at(0).fired);
}

TEST_CASE("a condition is met at a call site, and a JVM is killed between two calls of one method", "[java]") {
  const auto mode = GENERATE(range(std::size_t{0}, std::size_t{4}));
  INFO(fmt::format("{}", fmt::join(kModes[mode], " ")));
  ends_with_line(
      "between 7", "twice", 30,
      crash(fmt::format("{{ function = \"Victim.first\", count = 7 }}, {{ function = \"Victim.twice\", line = {} }}",
                        line_of("the second call"))),
      kModes[mode]);
}

TEST_CASE("a jump to a method's first instruction is not an entry", "[java]") {
  ends_with_line("loop 11", "loop", 20, crash("{ function = \"Victim.loop\", count = 12 }"));
}

TEST_CASE("parameter types choose among overloaded methods", "[java]") {
  Rig rig;
  add_jvm(rig, "long", 5);
  rig.start(crash("{ function = \"Victim.step(int)\" }"));
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK_FALSE(outcomes.at(0).fired);
  CHECK(rig.printed("done"));

  ends_with_line("long 3", "long", 5, crash("{ function = \"Victim.step(long)\", count = 4 }"));
}

TEST_CASE("constructors, inner classes, interface defaults and lambdas are found by name", "[java]") {
  ends_with_line("names 9 6", "names", 10,
                 crash("{ function = \"Victim.Inner.<init>\", count = 3 }, { function = \"Victim$Inner.own\" }, { "
                       "function = \"Victim.Shape.area\" }, "
                       "{ function = \"Victim.lambda$part$*\", count = 2 }"));
}

TEST_CASE("a JVM pauses at the entry of a method and continues", "[java]") {
  Rig rig;
  add_jvm(rig, "step", 50);
  rig.start(
      "[[fault]]\nid = \"it\"\nkind = \"pause\"\nnode = \"n1\"\nduration = \"200ms\"\nwhen = [ { function = "
      "\"Victim.step\", count = 20 } ]\n");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(*outcomes.at(0).ended_ns - outcomes.at(0).fired_ns >= 200'000'000);
  CHECK(rig.printed("done"));
}

TEST_CASE("the node that entered a method last gets the role", "[java]") {
  ends_with_line(
      "between 3", "twice", 50,
      "[[role]]\nname = \"leader\"\nfunction = \"Victim.first\"\n"
      "[[fault]]\nid = \"it\"\nkind = \"crash\"\nnode = \"@leader\"\nwhen = [ { function = \"Victim.second\", "
      "node = \"n1\", count = 3 } ]\n");
}

TEST_CASE("a crash fires at the nth time that an exception leaves a method", "[java]") {
  for (const char* name : {"Victim.passes throws NoSuchFileException",
                           "org.rose.test.Victim.opens(int) throws java.nio.file.NoSuchFileException"}) {
    INFO(name);
    ends_with_line("threw 99", "throws", 1000, crash(fmt::format("{{ function = \"{}\", count = 50 }}", name)),
                   {"-XX:TieredStopAtLevel=1"});
  }
}

TEST_CASE("an exception is thrown at a method's entry or call site exactly when due, 200 times", "[java]") {
  const auto mode = GENERATE(range(std::size_t{0}, std::size_t{4}));
  INFO(fmt::format("{}", fmt::join(kModes[mode], " ")));
  std::vector<int> wanted;
  for (int i = 101; i <= 300; ++i) wanted.push_back(i);
  const bool at_entry = GENERATE(true, false);
  Rig rig;
  add_jvm(rig, "store", 400, 1, kModes[mode]);
  rig.start(exception(at_entry ? "function = \"Victim.store\"\ncount = 101\ntimes = 200\n"
                               : fmt::format("function = \"Victim.store\"\nline = {}\ncount = 101\ntimes = 200\n",
                                             line_of("behind the step"))));
  rig.wait_end();
  const auto outcomes = rig.finish();
  INFO(outcomes.at(0).why_not);
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(0).injected == 200);
  CHECK(caught(rig) == wanted);
  CHECK(rig.lines("caught 101 java.io.IOException: injected by rose") == 1);
  CHECK(rig.lines("stored 100") == 1);
  CHECK(rig.lines("stored 101") == 0);
  CHECK(outcomes.at(0).effective());
  CHECK(rig.printed("stored 301"));
}

TEST_CASE("exceptions wait for their conditions, have the requested message, and end with their times", "[java]") {
  Rig rig;
  add_jvm(rig, "store", 40);
  rig.start(
      exception("function = \"Victim.store\"\nmessage = \"No space left\"\ncount = 2\nwhen = [ { function = "
                "\"Victim.step\", count = 10 } ]\n"));
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(caught(rig) == std::vector<int>{12});
  CHECK(rig.lines("caught 12 java.io.IOException: No space left") == 1);
  CHECK(outcomes.at(0).detail.find("org.rose.test.Victim.store") != std::string::npos);
}

TEST_CASE("several exceptions at one place fire in turn", "[java]") {
  Rig rig;
  add_jvm(rig, "store", 20);
  rig.start(
      "[[fault]]\nid = \"a\"\nkind = \"exception\"\nnode = \"n1\"\nthrows = \"java.io.IOException\"\nfunction = "
      "\"Victim.store\"\ncount = 5\n"
      "[[fault]]\nid = \"b\"\nkind = \"exception\"\nnode = \"n1\"\nthrows = "
      "\"java.lang.IllegalStateException\"\nfunction = \"Victim.store\"\ncount = 9\n");
  rig.wait_end();
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).fired);
  CHECK(outcomes.at(1).fired);
  INFO(rig.out());
  CHECK(rig.lines("caught 5 java.io.IOException: injected by rose") == 1);
  CHECK(caught(rig).size() == 2);
  CHECK(rig.printed("java.lang.IllegalStateException"));
}

TEST_CASE("faults in a class that another agent redefines are kept", "[java]") {
  Rig rig;
  add_jvm(rig, "changed", 1, 1, {"-javaagent:" + kClasses + "/changer.jar"});
  rig.start(exception("function = \"Victim.store\"\ntimes = \"forever\"\n"));
  rig.wait_end();
  CHECK(rig.finish().at(0).fired);
  INFO(rig.out());
  CHECK(rig.lines("before true") == 1);
  CHECK(rig.lines("changes 1") == 1);
  CHECK(rig.lines("after true") == 1);
}

TEST_CASE("features that a JVM does not support are reported", "[java]") {
  struct Case {
    std::string part;
    std::vector<std::string> options, before;
    std::string schedule, word;
  };
  const std::vector<Case> cases{
      {"step",
       {"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0"},
       {},
       crash("{ function = \"Victim.step\" }"),
       "debugger"},
      {"step",
       {},
       {"env", "-u", "JAVA_TOOL_OPTIONS"},
       crash("{ function = \"Victim.step\" }"),
       "JAVA_TOOL_OPTIONS must reach it"},
      {"step", {}, {}, crash("{ function = \"Victim.nowhere\" }"), "no class that n1 loaded has it"},
      {"step", {}, {}, crash("{ function = \"Victim.missing\" }"), "native or abstract"},
      {"step", {}, {}, crash("{ function = \"Victim.step\", line = 1 }"), "no code of line 1"},
      {"step", {}, {}, crash("{ function = \"Victim.step(int)\", offset = 1 }"), "no instruction begins at offset 1"},
      {"store",
       {},
       {},
       "[[fault]]\nid = \"it\"\nkind = \"exception\"\nnode = \"n1\"\nthrows = \"org.x.Nowhere\"\nfunction = "
       "\"Victim.store\"\n",
       "org.x.Nowhere"},
      {"store",
       {},
       {},
       "[[fault]]\nid = \"it\"\nkind = \"exception\"\nnode = \"n1\"\nthrows = \"java.lang.String\"\nfunction = "
       "\"Victim.store\"\n",
       "not an exception"},
  };
  for (const Case& one : cases) {
    Rig rig;
    auto& node = add_jvm(rig, one.part, 3, 1, one.options);
    node.command.insert(node.command.begin(), one.before.begin(), one.before.end());
    rig.start(one.schedule);
    rig.wait_end();
    const auto outcomes = rig.finish();
    INFO(one.schedule << rig.out());
    CHECK(rig.printed("done"));
    CHECK_FALSE(outcomes.at(0).fired);
    INFO(outcomes.at(0).why_not);
    CHECK(outcomes.at(0).why_not.find(one.word) != std::string::npos);
  }
}

TEST_CASE("methods of nodes that run no JVM are refused before anything starts", "[java]") {
  Rig rig;
  rig.add({"print", "up"});
  const auto wrong = rig.try_prepare(exception("function = \"org.x.Store.append\"\n"));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("not a method of a JVM") != std::string::npos);
}
