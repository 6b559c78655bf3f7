// Arguments, results, variables and fields of Java, queried in real JVMs. All must be correct, from several threads.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "replay_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

constexpr int kTimes = 8, kThreads = 3;

config::Config deployment(const std::string& java, const std::vector<std::string>& more = {}) {
  config::Config config =
      one_jvm("values", java, {"org.rose.test.Values", std::to_string(kTimes), std::to_string(kThreads)});
  config::Command& command = config.nodes[0].command;
  command.insert(command.end(), more.begin(), more.end());
  return config;
}

struct Answers {
  replay::ValueQueries asked;
  replay::Run run;
  std::map<std::string, std::vector<schedule::Value>> values;
  std::map<std::string, std::string> type, why;

  Answers(const config::Config& config, const std::vector<std::string>& queries) {
    auto questions = replay::ask(config, queries);
    if (!questions) FAIL(questions.error().message);
    asked = std::move(*questions);
    const Folder folder;
    replay::RunOptions options = run_options(config, folder);
    options.asked = &asked;
    run = run_of(config, options);
    for (const schedule::Value& value : run.result.values)
      values[asked.questions[value.question].text].push_back(value);
    for (const replay::JavaAnswer& answer : run.java)
      if (answer.why.empty()) type[asked.questions[answer.question].text] = answer.type;
    for (std::uint32_t i = 0; i < asked.questions.size(); ++i)
      if (!type.contains(asked.questions[i].text))
        why[asked.questions[i].text] =
            asked.questions[i].refused.empty() ? replay::unanswered(asked, i, run.java) : asked.questions[i].refused;
  }
  // Checks the values of all calls, in any order, because threads run in parallel.
  void all(const std::string& query, const std::function<std::string(int)>& value,
           const std::string& wanted_type = {}) {
    CAPTURE(query, why[query]);
    std::vector<std::string> wanted, had;
    for (int i = 0; i < kTimes * kThreads; ++i)
      if (std::string text = value(i); text != "-") wanted.push_back(text);
    for (const schedule::Value& one : values[query]) had.push_back(one.text);
    std::sort(wanted.begin(), wanted.end());
    std::sort(had.begin(), had.end());
    CHECK(had == wanted);
    if (!wanted_type.empty()) CHECK(type[query] == wanted_type);
  }
};

std::string quoted(const std::string& text) { return "\"" + text + "\""; }
std::string number(double value) { return fmt::format("{}", value); }

int line_of(const std::string& mark) {
  std::ifstream file(ROSE_TEST_DIR "/programs/java/org/rose/test/Values.java");
  std::string line;
  for (int n = 1; std::getline(file, line); ++n)
    if (line.find(mark) != std::string::npos) return n;
  FAIL("no line has " << mark);
  return 0;
}

}  // namespace

TEST_CASE("arguments, variables and fields of all Java types are right, from several threads", "[java]") {
  for (const std::string& java : javas()) {
    INFO(java);
    const std::string line = "Values.java:" + std::to_string(line_of("// behind `twice`")) + ":";
    const std::string plain = "org.rose.test.Values.plain", weigh = "org.rose.test.Values.Box.weigh";
    Answers answers(deployment(java), {plain + "(number)",
                                       plain + "(arg2)",
                                       plain + "(text)",
                                       plain + "(share)",
                                       plain + "(flag)",
                                       plain + "(shade)",
                                       plain + "(letter)",
                                       plain + "(small)",
                                       plain + "(arg9)",
                                       line + "twice",
                                       "org/rose/test/" + line + "number",
                                       weigh + "(by)",
                                       weigh + "(this)",
                                       weigh + "(this.label)",
                                       weigh + "(this.epoch)",
                                       weigh + "(this.made)",
                                       weigh + "(this.boxed)",
                                       weigh + "(this.counter)",
                                       weigh + "(this.next.label)",
                                       weigh + "(this.next.next)",
                                       weigh + "(this.next.next.label)",
                                       weigh + "(this.parts)",
                                       weigh + "(this.parts.length)",
                                       "Bare.plain(arg1)",
                                       "Bare.plain(arg2)",
                                       "Values.loop(left)"});
    answers.all(plain + "(number)", [](int i) { return std::to_string(i); }, "int");
    answers.all(plain + "(arg2)", [](int i) { return std::to_string(3'000'000'000L * i); }, "long");
    answers.all(plain + "(text)", [](int i) { return quoted("text-" + std::to_string(i)); }, "String");
    answers.all(plain + "(share)", [](int i) { return number(i / 2.0); }, "double");
    answers.all(plain + "(flag)", [](int i) { return i % 2 == 0 ? "true" : "false"; }, "boolean");
    answers.all(plain + "(shade)", [](int i) { return i % 2 == 1 ? "DEEP" : "LIGHT"; });
    answers.all(
        plain + "(letter)", [](int i) { return "'" + std::string(1, static_cast<char>('a' + i % 26)) + "'"; }, "char");
    answers.all(plain + "(small)", [](int i) { return std::to_string(-i); }, "byte");
    answers.all(plain + "(arg9)", [](int) { return "null"; });
    answers.all(line + "twice", [](int i) { return std::to_string(2 * i); }, "int");
    answers.all("org/rose/test/" + line + "number", [](int i) { return std::to_string(i); });
    answers.all(weigh + "(by)", [](int i) { return std::to_string(i); }, "int");
    answers.all(weigh + "(this)", [](int) { return "(org.rose.test.Values$Box)"; });
    answers.all(weigh + "(this.label)", [](int i) { return quoted("box-" + std::to_string(i)); });
    answers.all(weigh + "(this.epoch)", [](int i) { return std::to_string(1000 + i); });
    answers.all(weigh + "(this.made)", [](int) { return "7"; });
    answers.all(weigh + "(this.boxed)", [](int i) { return std::to_string(2 * i); });
    answers.all(weigh + "(this.counter)", [](int i) { return std::to_string(-i); });
    answers.all(weigh + "(this.next.label)", [](int i) { return quoted("box-" + std::to_string(i + 1)); });
    answers.all(weigh + "(this.next.next)", [](int) { return "null"; });
    answers.all(weigh + "(this.next.next.label)", [](int) { return "(not readable)"; });
    answers.all(weigh + "(this.parts)", [](int) { return "(int[3])"; });
    answers.all(weigh + "(this.parts.length)", [](int) { return "3"; });
    answers.all("Bare.plain(arg1)", [](int i) { return std::to_string(i); }, "int");
    answers.all("Bare.plain(arg2)", [](int i) { return quoted("bare-" + std::to_string(i)); });
    // The value is recorded once per call, and not each time the loop returns to the first instruction of the method.
    answers.all("Values.loop(left)", [](int) { return "(int[1])"; });
    std::set<int> tids;
    for (const schedule::Value& value : answers.values[plain + "(number)"]) {
      CHECK(value.node == "n1");
      CHECK(value.is_number);
      tids.insert(value.tid);
    }
    CHECK(tids.size() == kThreads);
  }
}

TEST_CASE("results of Java methods are right, and an exception is not a result", "[java]") {
  for (const std::string& java : javas()) {
    INFO(java);
    const std::string values = "org.rose.test.Values.";
    Answers answers(deployment(java), {values + "plain:return", values + "longs:return", values + "texts:return",
                                       values + "shares:return", values + "odd:return", values + "shades:return",
                                       values + "lists:return", values + "failing:return", values + "inner:return",
                                       values + "narrow:return", values + "Box.weigh:return"});
    answers.all(values + "plain:return", [](int i) { return std::to_string(2 * i + 1); }, "int");
    answers.all(
        values + "longs:return", [](int i) { return std::to_string(i % 2 == 0 ? -1L * i : 1'000'000'000'000L + i); },
        "long");
    answers.all(
        values + "texts:return", [](int i) { return i % 3 == 0 ? "null" : quoted("text-" + std::to_string(i)); },
        "String");
    answers.all(values + "shares:return", [](int i) { return number(i / 4.0); }, "double");
    answers.all(values + "odd:return", [](int i) { return i % 2 == 1 ? "true" : "false"; }, "boolean");
    answers.all(values + "lists:return", [](int) { return "(java.util.ArrayList)"; });
    answers.all(values + "failing:return", [](int i) { return i % 2 == 1 ? "-" : std::to_string(i + 5); });
    answers.all(values + "inner:return", [](int i) { return i % 2 == 1 ? "-" : std::to_string(i + 5); });
    answers.all(values + "Box.weigh:return", [](int i) { return std::to_string(i + 3); });
    CHECK(answers.values[values + "shades:return"].size() == 2 * kTimes * kThreads);  // because once() calls it twice
    CHECK(answers.values[values + "narrow:return"].size() == kTimes * kThreads + kTimes * kThreads / 2);
    CHECK(std::count_if(answers.values[values + "narrow:return"].begin(),
                        answers.values[values + "narrow:return"].end(),
                        [](const auto& value) { return value.text == "1"; }) == kTimes * kThreads / 2);
  }
}

TEST_CASE("callers of a Java method are reported with the line", "[java]") {
  for (const std::string& java : javas()) {
    INFO(java);
    const std::string values = "org.rose.test.Values.";
    Answers answers(deployment(java), {values + "inner:callers", values + "plain:callers"});
    answers.all(
        values + "inner:callers",
        [](int i) {
          return i % 2 == 1 ? "-"
                            : "org.rose.test.Values.failing (line " + std::to_string(line_of("return inner(i);")) + ")";
        },
        "a caller");
    REQUIRE(answers.values[values + "plain:callers"].size() == kTimes * kThreads);
    CHECK(answers.values[values + "plain:callers"].front().text.starts_with("org.rose.test.Values."));
  }
}

TEST_CASE("values that Java cannot provide have a reason, and excess values are left out", "[java]") {
  const std::string java = javas().front(), values = "org.rose.test.Values.";
  Answers answers(deployment(java, {"busy"}),
                  {values + "plain(nothing)", values + "plain(arg12)", values + "Box.weigh(this.nothing)",
                   values + "loop:return", "Bare.plain(number)", values + "gone(arg1)", "Values.java:1:number",
                   values + "plain:calls", values + "busy(i)", values + "inner(this)"});
  CHECK(answers.why[values + "plain(nothing)"].find("has no 'nothing' in scope there: number, large, text") !=
        std::string::npos);
  CHECK(answers.why[values + "plain(arg12)"].find("has no argument 12") != std::string::npos);
  CHECK(answers.values[values + "Box.weigh(this.nothing)"].empty());
  CHECK(std::any_of(answers.run.java.begin(), answers.run.java.end(), [](const auto& answer) {
    return answer.why == "org.rose.test.Values$Box has no field 'nothing'";
  }));
  CHECK(answers.why[values + "loop:return"].find("returns nothing") != std::string::npos);
  CHECK(answers.why["Bare.plain(number)"].find("compiled without names of variables") != std::string::npos);
  CHECK(answers.why[values + "gone(arg1)"].find("no class that was loaded has a method") != std::string::npos);
  CHECK(answers.why["Values.java:1:number"].find("has code of line 1") != std::string::npos);
  CHECK(answers.why[values + "plain:calls"].find("are not recorded") != std::string::npos);
  CHECK(answers.why[values + "inner(this)"].find("is static") != std::string::npos);
  // Of 100,000 calls, only some are reported, and the report says that some are missing.
  const auto busy = std::find_if(answers.asked.questions.begin(), answers.asked.questions.end(),
                                 [&](const auto& one) { return one.text == values + "busy(i)"; }) -
                    answers.asked.questions.begin();
  CHECK(answers.values[values + "busy(i)"].size() >= 300);
  CHECK(answers.values[values + "busy(i)"].size() < 50'000);
  for (std::size_t i = 0; i < answers.asked.meanings.size(); ++i)
    if (answers.asked.meanings[i].front().question == busy) CHECK(answers.run.seen.places[i].detached);
}
