// Values that were queried: values that distinguish failing from correct runs are reported, many values are grouped,
// and values that vary between equal runs are ignored as noise.
#include <catch2/catch.hpp>

#include <algorithm>

#include "explain_runs.h"

using namespace rose;
using explain::Group;
using script::Case;

namespace {

script::Run usual(int number) {
  script::Run run(number);
  for (int ms = 10; ms <= 100; ms += 30) run.enters(ms, "step" + std::to_string(ms));
  return run;
}

const explain::ValueTable& table(const explain::Explanation& e, const std::string& query) {
  const auto found =
      std::find_if(e.values.begin(), e.values.end(), [&](const auto& one) { return one.query == query; });
  REQUIRE(found != e.values.end());
  return *found;
}

}  // namespace

TEST_CASE("a value that only failing runs have is reported with its first occurrence and node", "[explain]") {
  Case one;
  one.input.questions = {{"store:return", "store", "int", "", {}},
                         {"store(length)", "store", "long", "", {}},
                         {"gone(x)", "gone", "", "optimized out", {}}};
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i + 1).faulted(103).has(50, 0, "0", 0).has(110, 0, "-1", -1).has(110, 1, "8", 8));
    one.add(Group::sound, usual(2 * i + 2).has(50, 0, "0", 0).has(110, 0, "0", 0).has(110, 1, "8", 8));
  }
  const explain::Explanation e = one.explain();
  REQUIRE(e.values.size() == 3);
  const explain::ValueTable& result = table(e, "store:return");
  CHECK(result.node == "n1");
  CHECK(result.score > 0.5);
  CHECK(result.clean);
  REQUIRE(result.failing.size() == 2);
  CHECK(result.failing[0].value == "-1");
  CHECK(result.failing[0].runs == 5);
  CHECK(result.failing[0].times == 5);
  CHECK(result.failing[1].value == "0");
  CHECK(result.failing[1].runs == 0);
  CHECK(result.failing[1].before == 5);
  REQUIRE(result.sound.size() == 1);
  CHECK(result.sound[0].runs == 5);
  REQUIRE(result.first);
  CHECK(result.first->value == "-1");
  CHECK(result.first->at_ns == 110 * script::kMillisecond);
  CHECK(result.first->tid == 1);
  CHECK(table(e, "store(length)").score == 0);
  CHECK(table(e, "store(length)").differs.empty());
  CHECK(table(e, "gone(x)").refused == "optimized out");
  CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) {
    return s.function == "store" && s.why.find("store:return is -1") != std::string::npos;
  }));
  const auto wrong = std::find_if(e.story.begin(), e.story.end(), [](const auto& line) { return line.first_wrong; });
  REQUIRE(wrong != e.story.end());
  CHECK(wrong->text.starts_with("store:return is -1"));
  CHECK(wrong->ts_ns == script::kZero + 110 * script::kMillisecond);
  const explain::InShort s = explain::in_short(e);
  CHECK(s.first_wrong.find("store:return is -1") != std::string::npos);
  CHECK(s.fault.find("fault") != std::string::npos);
  explain::Explanation killed = e;
  killed.stacks.resize(1);
  killed.stacks[0].stack.node = "n1";
  killed.stacks[0].stack.why = "gets SIGKILL";
  killed.stacks[0].stack.frames.resize(1);
  killed.stacks[0].stack.frames[0].function = "serve";
  CHECK(explain::in_short(killed).received.ends_with(" on n1: gets SIGKILL"));
}

TEST_CASE("a value counts only in the runs that were asked for it, a step in all runs", "[explain]") {
  // There are two rounds of runs, and only the second has the query. By chance, the runs of each single round also
  // differ in another function.
  Case one;
  one.input.questions = {{"store:return", "store", "int", "", {}}};
  for (int i = 0; i < 6; ++i) {
    const bool asked = i >= 2;
    script::Run failing = usual(2 * i + 1).faulted(103).enters(105, "give_up"), sound = usual(2 * i + 2);
    (asked ? failing : sound).enters(106, "by_chance");
    if (asked) failing.has(110, 0, "-1", -1), sound.has(110, 0, "0", 0);
    for (const auto& [group, run] : {std::pair(Group::failing, failing), std::pair(Group::sound, sound)}) {
      one.add(group, run);
      if (!asked) one.input.runs.back().unasked.insert(0);
    }
  }
  const explain::Explanation e = one.explain();
  const explain::ValueTable& result = table(e, "store:return");
  CHECK(result.clean);
  CHECK(result.differs == "store:return is -1 in 4 of 4 failing and 0 of 4 correct runs");
  CHECK(std::any_of(e.differences.begin(), e.differences.end(),
                    [](const auto& d) { return d.words == "enters give_up" && d.clean; }));
  CHECK(std::none_of(e.differences.begin(), e.differences.end(),
                     [](const auto& d) { return d.words == "enters by_chance" && d.clean; }));
}

TEST_CASE("many values are reported in groups, and values that vary between equal runs are ignored", "[explain]") {
  Case one;
  one.input.questions = {{"f(count)", "f", "int", "", {}}, {"f(random)", "f", "int", "", {}}};
  for (int i = 0; i < 5; ++i) {
    script::Run failing = usual(2 * i + 1).faulted(103).enters(104, "give_up"),
                sound = usual(2 * i + 2).enters(104, "commit");
    for (int k = 1; k < 20; ++k)
      failing.has(110 + k, 0, std::to_string(-k), -k), sound.has(110 + k, 0, std::to_string(100 * i + k), 100 * i + k);
    failing.has(120, 1, std::to_string(i), i);
    sound.has(120, 1, std::to_string(9 - i), 9 - i);
    one.add(Group::failing, failing);
    one.add(Group::sound, sound);
  }
  const explain::Explanation e = one.explain();
  const explain::ValueTable& count = table(e, "f(count)");
  CHECK(count.score > 0.5);
  REQUIRE(count.failing.size() == 1);
  CHECK(count.failing[0].value == "less than 0");
  REQUIRE(count.sound.size() == 1);
  CHECK(count.sound[0].value == "more than 0");
  CHECK(table(e, "f(random)").score == 0);
  // Values have their own probability that the differences are due to chance. The probability for steps stays the same.
  CHECK(std::any_of(e.differences.begin(), e.differences.end(),
                    [](const auto& d) { return d.words == "enters give_up"; }));
}

TEST_CASE("a query is undecided if its values separate the runs, but too few of them to exclude chance", "[explain]") {
  enum Trouble { noise, exception, unrelated };
  const auto with = [](int runs, Trouble trouble) {
    Case one;
    one.input.questions = {{"store:calls", "store", "", "", {}}};
    for (int i = 0; i < runs; ++i) {
      script::Run failing = usual(2 * i + 1).faulted(103), sound = usual(2 * i + 2);
      if (trouble == noise && i % 2 == 0) failing.has(105, 0, "retry", 3), sound.has(105, 0, "retry", 3);
      if (trouble == unrelated && i % 2 == 0) failing.has(110, 0, "note", 1);
      if (trouble == noise || (trouble == exception && i != 1)) failing.has(110, 0, "note", 1);
      one.add(Group::failing, failing.has(111, 0, "write", 2));
      one.add(Group::sound, sound.has(111, 0, "write", 2));
    }
    return table(one.explain(), "store:calls");
  };
  for (const Trouble trouble : {noise, exception}) {
    const explain::ValueTable few = with(4, trouble), many = with(8, trouble);
    CHECK(few.undecided);
    CHECK(few.score == 0);
    CHECK_FALSE(many.undecided);
    CHECK(many.score > 0.5);
  }
  CHECK_FALSE(with(4, unrelated).undecided);
  CHECK(with(8, unrelated).score == 0);
}

TEST_CASE("steps that failing runs may lack only because they end earlier count as noise once", "[explain]") {
  Case one;
  one.input.questions = {{"store:calls", "store", "", "", {}}};
  for (int i = 0; i < 4; ++i) {
    one.add(Group::failing, usual(2 * i + 1).faulted(103).has(110, 0, "note", 1).ends(200));
    script::Run sound = usual(2 * i + 2).ends(300);
    // One of the correct runs is faster than the failing runs, the others are slower.
    for (int call = 0; call < 6; ++call) sound.has((i == 0 ? 150 : 210) + call, 0, "load " + std::to_string(call), 5);
    one.add(Group::sound, sound);
  }
  const explain::ValueTable calls = table(one.explain(), "store:calls");
  CHECK(calls.score > 0.5);
  CHECK(calls.differs.find("note") != std::string::npos);
}

TEST_CASE("queries are proposed for suspects first, then for functions that only one group calls", "[explain]") {
  Case one;
  one.input.questions = {{"store:calls", "store", "", "", {}}};
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i + 1)
                                .faulted(103)
                                .stack({{"write", "", 0, "/usr/lib/libc.so.6", 1}, {"store", "store.c", 7, "store", 1}})
                                .has(110, 0, "note (store.c:9)", 1)
                                .has(111, 0, "write@plt (store.c:8)", 2)
                                .has(112, 0, "std::format (format:80)", 3)
                                .has(113, 0, "runtime.convTstring (store.go:9)", 4));
    one.add(Group::sound, usual(2 * i + 2).has(111, 0, "puts@plt (store.c:8)", 3));
  }
  const explain::Explanation e = one.explain();
  const auto next = explain::next_functions(e, {"step100"}, 10);
  REQUIRE(!next.empty());
  CHECK(next.front() == "store");
  CHECK(std::find(next.begin(), next.end(), "note") != next.end());
  for (const std::string library : {"write@plt", "std::format", "runtime.convTstring"})
    CHECK(std::find(next.begin(), next.end(), library) == next.end());
  CHECK(std::find(next.begin(), next.end(), "step100") == next.end());
  CHECK(explain::next_functions(e, {}, 1).size() == 1);
  CHECK(std::any_of(e.differences.begin(), e.differences.end(),
                    [](const auto& d) { return d.words == "store calls note (store.c:9)" && d.callee == "note"; }));
}

TEST_CASE("a call in an inlined function speaks for this function", "[explain]") {
  Case one;
  one.input.questions = {{"store:calls", "store", "", "", {}}};
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i + 1).faulted(103).has(110, 0, "note (store.c:9), in the inlined hire", 1));
    one.add(Group::sound, usual(2 * i + 2).has(111, 0, "puts@plt (store.c:8)", 3));
  }
  const explain::Explanation e = one.explain();
  CHECK(std::any_of(e.differences.begin(), e.differences.end(),
                    [](const auto& d) { return d.words == "hire calls note (store.c:9)" && d.callee == "note"; }));
  const auto rank = [&](std::string_view function) {
    return std::find_if(e.suspects.begin(), e.suspects.end(), [&](const auto& s) { return s.function == function; });
  };
  CHECK(rank("hire") != e.suspects.end());
  CHECK(rank("hire") <= rank("store"));
}

TEST_CASE("functions that only the runs of one side enter are queried last", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i + 1).faulted(103).enters(104, "give_up").enters(105, "serve"));
    one.add(Group::sound, usual(2 * i + 2).enters(105, "serve"));
  }
  const explain::Explanation e = one.explain();
  REQUIRE(!e.suspects.empty());
  CHECK(e.suspects.front().function == "give_up");
  const auto next = explain::next_functions(e, {}, 10);
  CHECK(std::find(next.begin(), next.end(), "serve") != next.end());
  CHECK(next.back() == "give_up");
}

TEST_CASE("without a difference, queries are proposed from the fault and the symptom inwards", "[explain]") {
  Case one;
  const auto both = [](int number) {
    return script::Run(number)
        .enters(100, "put")
        .enters(110, "send")
        .enters(120, "copy", 2, "n2")
        .enters(130, "put")
        .enters(140, "count", 2, "n2");
  };
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, both(2 * i + 1).faulted(101));
    one.add(Group::sound, both(2 * i + 2));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::nothing_found);
  CHECK(explain::next_functions(e, {}, 10) == std::vector<std::string>{"send", "count", "copy", "put"});
  CHECK(explain::next_functions(e, {"send"}, 2) == std::vector<std::string>{"count", "copy"});
  CHECK(explain::next_functions(e, {"kv::send(int, char const*)"}, 2) == std::vector<std::string>{"send", "count"});
  CHECK(explain::next_functions(e, {"send(int, char const*)"}, 2) == std::vector<std::string>{"count", "copy"});
}

TEST_CASE("a value that was read in an inlined copy belongs to the function", "[explain]") {
  Case one;
  one.input.questions = {{"store(n)", "store (inlined into main)", "int", "", {}}};
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i + 1).faulted(103).has(110, 0, "-1", -1));
    one.add(Group::sound, usual(2 * i + 2).has(110, 0, "7", 7));
  }
  const explain::Explanation e = one.explain();
  CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "store"; }));
  CHECK(std::none_of(e.suspects.begin(), e.suspects.end(),
                     [](const auto& s) { return s.function.find(' ') != s.function.npos; }));
}

TEST_CASE("a function's differing caller is a step and a suspect", "[explain]") {
  Case one;
  one.input.questions = {{"note:callers", "note", "", "", {}}};
  const std::string caller = GENERATE("store (store.c:38)", "store (store.c:38), inlined into keep (store.c:60)",
                                      "go statement in store (store.c:38)", "further out: store (store.c:38)");
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i + 1).faulted(103).has(110, 0, caller, 0));
    one.add(Group::sound, usual(2 * i + 2).has(110, 0, "main (store.c:101)", 0));
  }
  const explain::Explanation e = one.explain();
  CHECK(std::any_of(e.differences.begin(), e.differences.end(),
                    [&](const auto& d) { return d.words == "note is called by " + caller && d.clean; }));
  REQUIRE(!e.suspects.empty());
  CHECK(e.suspects[0].function == "store");
  CHECK(std::none_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "note"; }));
}
