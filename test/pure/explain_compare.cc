// How differences between runs are distinguished from noise.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <map>
#include <random>

#include "explain/permutations.h"
#include "explain_runs.h"

using namespace rose;
using explain::Group;
using script::Case;

namespace {

// The work of every run: it receives a request and writes its result.
script::Run usual(int number) {
  script::Run run(number);
  run.enters(10, "start").enters(100, "request").does(101, "openat", "/data/log").enters(102, "store");
  return run;
}

bool reports(const explain::Explanation& e, const std::string& words, bool missing = false) {
  return std::any_of(e.differences.begin(), e.differences.end(),
                     [&](const auto& d) { return d.words == words && d.missing == missing; });
}

}  // namespace

TEST_CASE("steps that only failing runs make after the fault are reported", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i).faulted(103).enters(104, "give_up").prints(105, 7, "gave up"));
    one.add(Group::sound, usual(2 * i + 1).enters(104, "commit").prints(300, 1, "saved"));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  CHECK(e.fault == "fault");
  CHECK(e.failing == 5);
  CHECK(e.sound == 5);
  CHECK(reports(e, "enters give_up"));
  CHECK(reports(e, "enters commit", true));
  CHECK(reports(e, "logs 'message 7'"));
  CHECK_FALSE(reports(e, "enters request"));
  REQUIRE_FALSE(e.suspects.empty());
  CHECK((e.suspects[0].function == "give_up" || e.suspects[0].function == "store"));
  double all = 0;
  for (const explain::Suspect& suspect : e.suspects) all += suspect.score;
  CHECK(all == Approx(1));
  CHECK_FALSE(e.suspects[0].why.empty());
}

TEST_CASE("steps before the fault that all runs make are not differences", "[explain]") {
  // In each run the fault comes at another time. Correct runs are cut at the same step as failing ones.
  Case one;
  for (int i = 0; i < 4; ++i) {
    const int at = 100 + 150 * i;
    one.add(
        Group::failing,
        script::Run(2 * i).enters(at, "request").enters(at + 1, "prepare").faulted(at + 2).enters(at + 3, "give_up"));
    one.add(Group::sound,
            script::Run(2 * i + 1).enters(at, "request").enters(at + 1, "prepare").enters(at + 3, "commit"));
  }
  const explain::Explanation e = one.explain();
  CHECK(reports(e, "enters give_up"));
  CHECK_FALSE(reports(e, "enters prepare"));
  CHECK_FALSE(reports(e, "enters prepare", true));
  for (const explain::Run& run : one.input.runs) CHECK(run.found_cut);
}

TEST_CASE("differences that the fault causes without the bug weigh less than those of the bug alone", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(3 * i).faulted(103).enters(104, "retry").enters(105, "forget"));
    one.add(Group::sound, usual(3 * i + 1).enters(104, "commit"));
    one.add(Group::near, usual(3 * i + 2).faulted(103).enters(104, "retry"));
  }
  const explain::Explanation e = one.explain();
  REQUIRE(e.suspects.size() >= 2);
  const auto score = [&](const std::string& function) {
    for (const explain::Suspect& s : e.suspects)
      if (s.function == function) return s.score;
    return 0.0;
  };
  CHECK(score("forget") > score("retry"));
  const auto forget = std::find_if(e.differences.begin(), e.differences.end(),
                                   [](const auto& d) { return d.words == "enters forget"; });
  REQUIRE(forget != e.differences.end());
  CHECK(forget->only_bug);
  const auto retry =
      std::find_if(e.differences.begin(), e.differences.end(), [](const auto& d) { return d.words == "enters retry"; });
  REQUIRE(retry != e.differences.end());
  CHECK_FALSE(retry->only_bug);
  const auto first = std::find_if(e.story.begin(), e.story.end(), [](const auto& line) { return line.first_wrong; });
  REQUIRE(first != e.story.end());
  CHECK(first->text.starts_with("enters forget"));
}

TEST_CASE("a difference that a weaker fault lacks although it triggers the bug weighs less", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i).faulted(103).enters(104, "reconnect").enters(105, "restore"));
    one.add(Group::sound, usual(2 * i + 1).enters(104, "commit"));
  }
  one.add(Group::shorter, usual(10).faulted(103).enters(105, "restore"));
  one.add(Group::shorter, usual(11).faulted(103).enters(105, "restore").enters(106, "rename"));
  const explain::Explanation e = one.explain();
  CHECK(e.shorter == 2);
  CHECK(e.failing == 5);
  const auto find = [&](const std::string& words) {
    const auto d =
        std::find_if(e.differences.begin(), e.differences.end(), [&](const auto& each) { return each.words == words; });
    REQUIRE(d != e.differences.end());
    return *d;
  };
  CHECK(find("enters restore").clean);
  CHECK_FALSE(find("enters reconnect").clean);
  CHECK(find("enters restore").weight > 1.5 * find("enters reconnect").weight);
  CHECK_FALSE(reports(e, "enters rename"));
  const auto score = [&](const std::string& function) {
    for (const explain::Suspect& suspect : e.suspects)
      if (suspect.function == function) return suspect.score;
    return 0.0;
  };
  CHECK(score("restore") > score("reconnect"));
  CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) {
    return s.function == "reconnect" && s.why.ends_with("but the bug occurs without it if the fault is shorter");
  }));
  const auto first = std::find_if(e.story.begin(), e.story.end(), [](const auto& line) { return line.first_wrong; });
  REQUIRE(first != e.story.end());
  CHECK(first->text.starts_with("enters restore"));
}

TEST_CASE("the same steps in a different order on one thread are reported", "[explain]") {
  Case one;
  for (int i = 0; i < 6; ++i) {
    one.add(Group::failing,
            usual(2 * i).faulted(103).enters(104, "publish").does(105, "fsync", "/data/log").enters(106, "done"));
    one.add(Group::sound, usual(2 * i + 1).does(104, "fsync", "/data/log").enters(105, "publish").enters(106, "done"));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  CHECK(std::any_of(e.differences.begin(), e.differences.end(),
                    [](const auto& d) { return d.words.starts_with("enters publish, then fsync"); }));
  CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "publish"; }));
}

TEST_CASE("loops with different iteration counts are not differences", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    script::Run failing = usual(2 * i).faulted(103), sound = usual(2 * i + 1);
    for (int k = 0; k < 5 + 3 * i; ++k) failing.enters(110 + k, "poll");
    for (int k = 0; k < 20 - 3 * i; ++k) sound.enters(110 + k, "poll");
    one.add(Group::failing, failing);
    one.add(Group::sound, sound);
  }
  const explain::Explanation e = one.explain();
  CHECK(e.differences.empty());
  CHECK(e.verdict == explain::Verdict::nothing_found);
  CHECK(e.suspects.empty());
}

TEST_CASE("steps that vary between runs of one group are noise", "[explain]") {
  Case one;
  for (int i = 0; i < 6; ++i) {
    script::Run failing = usual(2 * i).faulted(103).enters(104, "give_up"), sound = usual(2 * i + 1);
    if (i % 2 == 0) failing.enters(200, "collect_garbage");
    if (i % 3 == 0) sound.enters(200, "collect_garbage");
    one.add(Group::failing, failing);
    one.add(Group::sound, sound);
  }
  const explain::Explanation e = one.explain();
  CHECK(reports(e, "enters give_up"));
  CHECK_FALSE(reports(e, "enters collect_garbage"));
}

TEST_CASE("a step later than a failing run's early end is not reported as missing", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i).faulted(103).enters(104, "give_up").ends(200));
    one.add(Group::sound, usual(2 * i + 1).enters(104, "commit").enters(900, "night_job"));
  }
  const explain::Explanation e = one.explain();
  CHECK(reports(e, "enters commit", true));
  CHECK_FALSE(reports(e, "enters night_job", true));
}

TEST_CASE("functions that were detached are not reported as missing", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i).faulted(103).let_go("busy").enters(104, "give_up"));
    one.add(Group::sound, usual(2 * i + 1).enters(104, "busy"));
  }
  const explain::Explanation e = one.explain();
  CHECK_FALSE(reports(e, "enters busy", true));
  CHECK(std::any_of(e.limits.begin(), e.limits.end(),
                    [](const auto& limit) { return limit.find("too often") != std::string::npos; }));
}

TEST_CASE("a step that only failing runs make is reported even if it is so frequent that it was detached",
          "[explain]") {
  // In all failing runs, `spin` is entered after the fault and then detached. In the first `unseen` correct runs, it is
  // detached before the time of the fault, so it is unknown whether they enter it later.
  const auto with = [](int unseen) {
    Case one;
    for (int i = 0; i < 5; ++i) {
      one.add(Group::failing,
              usual(2 * i).faulted(103).enters(104, "give_up").enters(105, "spin").enters(106, "spin").let_go("spin"));
      one.add(Group::sound, i < unseen ? usual(2 * i + 1).enters(20, "spin").let_go("spin") : usual(2 * i + 1));
    }
    return one;
  };
  Case known = with(0), one_unknown = with(1);
  const explain::Explanation e = known.explain();
  CHECK(reports(e, "enters spin"));
  CHECK(std::none_of(e.limits.begin(), e.limits.end(),
                     [](const auto& limit) { return limit.find("too often") != std::string::npos; }));
  const explain::Explanation other = one_unknown.explain();
  CHECK_FALSE(reports(other, "enters spin"));
  CHECK(reports(other, "enters give_up"));
  CHECK(std::any_of(other.limits.begin(), other.limits.end(),
                    [](const auto& limit) { return limit.starts_with("1 function was entered too often"); }));
}

TEST_CASE("a run with too many events keeps infrequent functions and late events", "[explain]") {
  script::Run run(1);
  run.enters(1, "begin");
  for (int ms = 2; ms < 902; ++ms) {
    for (int k = 0; k < 400; ++k) run.enters(ms, fmt::format("spin{}", k % 20));
    if (ms % 100 == 0) run.enters(ms, "tick", 2);
  }
  run.enters(950, "give_up").enters(960, "spin7");
  explain::Kinds kinds;
  const explain::Run kept = explain::condense(run.result(), run.lines(), Group::failing, kinds);
  CHECK_FALSE(kept.cut_short);
  CHECK(kept.steps.size() <= explain::kMostSteps);
  CHECK(kept.steps.size() > explain::kMostSteps / 4);
  std::map<std::string, std::size_t> entries;
  std::int64_t longest = 0;
  std::map<std::uint32_t, std::int64_t> last;
  for (const explain::Step& step : kept.steps) {
    ++entries[kinds[step.kind].function];
    if (const auto before = last.find(step.kind); before != last.end() && kinds[step.kind].sampled)
      longest = std::max(longest, step.ts_ns - before->second);
    last[step.kind] = step.ts_ns;
  }
  CHECK(entries["begin"] == 1);
  CHECK(entries["tick"] == 9);
  CHECK(entries["give_up"] == 1);
  CHECK(entries["spin7"] > 500);
  CHECK(longest < 70 * kMillisecond);
  CHECK(kinds[kept.steps.back().kind].function == "spin7");
  CHECK(kinds[kept.steps.back().kind].sampled);
  CHECK_FALSE(kinds[kept.steps.front().kind].sampled);
}

TEST_CASE("nothing is found in pairs of groups that do not differ", "[explain]") {
  // Makes twenty pairs of groups of runs that do not differ. In most pairs, some steps occur by chance in either group.
  std::mt19937 chance(7);
  const auto coin = [&](double p) { return std::uniform_real_distribution<>(0, 1)(chance) < p; };
  for (int pair = 0; pair < 20; ++pair) {
    CAPTURE(pair);
    Case one;
    const int noises = pair % 5;
    for (int i = 0; i < 10; ++i) {
      script::Run run = usual(i).faulted(103);
      run.enters(104, "carry_on").prints(120, 3, "all is well");
      for (int k = 0; k < noises; ++k) {
        if (!coin(0.2 + 0.15 * k)) continue;
        run.enters(200 + k, "by_chance_" + std::to_string(k))
            .fails(201 + k, "openat", 2, "/data/maybe" + std::string(1, static_cast<char>('a' + k)));
      }
      one.add(i % 2 == 0 ? Group::failing : Group::sound, run);
    }
    const explain::Explanation e = one.explain();
    CHECK(e.verdict == explain::Verdict::nothing_found);
    CHECK(e.suspects.empty());
    CHECK(e.differences.empty());
    CHECK_FALSE(e.limits.empty());
  }
}

TEST_CASE("two runs per group are too few for an explanation", "[explain]") {
  Case one;
  for (int i = 0; i < 2; ++i) {
    one.add(Group::failing, usual(2 * i).faulted(103).enters(104, "give_up"));
    one.add(Group::sound, usual(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::nothing_found);
  CHECK(std::any_of(e.limits.begin(), e.limits.end(),
                    [](const auto& limit) { return limit.find("--runs") != std::string::npos; }));
}

TEST_CASE("runs without a fault explain nothing", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i).enters(104, "give_up"));
    one.add(Group::sound, usual(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::nothing_found);
  CHECK(e.story.empty());
}

TEST_CASE("a step of one failing run is not reported beside a step of all failing runs", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing,
            usual(2 * i).faulted(103).enters(104, "give_up").prints(300, static_cast<std::uint32_t>(20 + i), "name"));
    one.add(Group::sound, usual(2 * i + 1).prints(300, static_cast<std::uint32_t>(40 + i), "name"));
  }
  const explain::Explanation e = one.explain();
  CHECK(reports(e, "enters give_up"));
  for (const explain::DifferenceText& d : e.differences) CHECK_FALSE(d.words.starts_with("logs"));
  for (const explain::StoryLine& line : e.story) CHECK(line.evidence.find("1 of 5") == std::string::npos);
}

TEST_CASE("if noise could explain the difference, more runs are requested and settle it", "[explain]") {
  // Ten steps, each of which occurs in about half of the runs, in a pattern of its own.
  const auto noisy = [](script::Run run, int number) {
    for (int thing = 0; thing < 10; ++thing)
      if (((number * 2654435761U) >> (8 + thing)) & 1U) run.enters(200 + thing, "thing" + std::to_string(thing), 7);
    return run;
  };
  const auto with = [&](int runs) {
    Case one;
    for (int i = 0; i < runs; ++i) {
      one.add(Group::failing, noisy(usual(2 * i).faulted(103).enters(104, "give_up"), 2 * i + 1));
      one.add(Group::sound, noisy(usual(2 * i + 1), 2 * i + 2));
    }
    return one;
  };
  Case few = with(4), many = with(9), quiet;
  CHECK(explain::needs_more_runs(few.input));
  CHECK(few.explain().verdict == explain::Verdict::nothing_found);
  CHECK_FALSE(explain::needs_more_runs(many.input));
  CHECK(reports(many.explain(), "enters give_up"));
  // If the runs are equal and have no differences, no further runs are needed.
  for (int i = 0; i < 5; ++i) {
    quiet.add(Group::failing, usual(2 * i).faulted(103));
    quiet.add(Group::sound, usual(2 * i + 1));
  }
  CHECK_FALSE(explain::needs_more_runs(quiet.input));
}

TEST_CASE("one outlier hides nothing if there are enough other runs", "[explain]") {
  const auto with = [](int runs, bool failing_odd, bool sound_odd) {
    Case one;
    for (int i = 0; i < runs; ++i) {
      script::Run failing = usual(2 * i).faulted(103), sound = usual(2 * i + 1);
      if (!failing_odd || i != 1) failing.enters(104, "hand_out");
      if (sound_odd && i == 2) sound.enters(104, "hand_out");
      one.add(Group::failing, failing);
      one.add(Group::sound, sound);
    }
    return one;
  };
  for (const bool failing : {true, false}) {
    CAPTURE(failing);
    Case few = with(5, failing, !failing), enough = with(7, failing, !failing);
    CHECK(explain::needs_more_runs(few.input));
    CHECK(few.explain().verdict == explain::Verdict::nothing_found);
    CHECK_FALSE(explain::needs_more_runs(enough.input));
    const explain::Explanation e = enough.explain();
    CHECK(reports(e, "enters hand_out"));
    REQUIRE(!e.suspects.empty());
    CHECK(std::any_of(e.suspects.begin(), e.suspects.end(), [](const auto& s) { return s.function == "hand_out"; }));
    CHECK(std::none_of(e.story.begin(), e.story.end(), [](const auto& line) { return line.first_wrong; }));
  }
  // More runs are also requested if the nodes made the step before the fault as well, even if the fault repeats the
  // step in a run without the bug.
  Case before;
  for (int i = 0; i < 5; ++i) {
    script::Run sound = usual(2 * i + 1).enters(50, "elect", 3);
    if (i == 2) sound.enters(300, "elect", 3);
    before.add(Group::failing, usual(2 * i).enters(50, "elect", 3).faulted(103).enters(300, "elect", 3));
    before.add(Group::sound, sound);
  }
  before.add(Group::near, usual(10).enters(50, "elect", 3).faulted(103));
  Case harmless = before;
  harmless.add(Group::near, usual(11).enters(50, "elect", 3).faulted(103).enters(300, "elect", 3));
  CHECK(explain::needs_more_runs(before.input));
  CHECK(explain::needs_more_runs(harmless.input));
  Case two = with(7, true, true);
  CHECK(two.explain().verdict == explain::Verdict::nothing_found);
}

TEST_CASE("if only an order of steps marks the bug and other orders vary, a few more runs are requested", "[explain]") {
  const auto with = [](int runs, bool alone) {
    Case one;
    for (int i = 0; i < runs; ++i) {
      // The fault causes retry(), with and without the bug. With the bug, request() follows datagram().
      const auto others = [&](script::Run run) {
        for (int k = 0; k < 6; ++k)
          for (int at = 0; at < 2; ++at)
            run.enters(200 + 10 * k + at, fmt::format("turn{}", (i + k) % (k + 2) == 0 ? 1 - at : at), 20 + k);
        return run;
      };
      one.add(Group::failing, others(usual(3 * i)
                                         .faulted(103)
                                         .enters(104, "retry")
                                         .enters(110, "datagram", 9)
                                         .enters(alone ? 111 : 109, "request", 9)
                                         .enters(120, "answer", 9)));
      one.add(Group::sound,
              others(usual(3 * i + 1).enters(109, "request", 9).enters(110, "datagram", 9).enters(120, "answer", 9)));
      one.add(Group::near, others(usual(3 * i + 2)
                                      .faulted(103)
                                      .enters(104, "retry")
                                      .enters(109, "request", 9)
                                      .enters(110, "datagram", 9)
                                      .enters(120, "answer", 9)));
    }
    return one;
  };
  Case few = with(4, true), enough = with(9, true), both = with(9, false);
  CHECK(explain::needs_more_runs(few.input));
  CHECK_FALSE(explain::needs_more_runs(enough.input));
  CHECK_FALSE(explain::needs_more_runs(both.input));
}

TEST_CASE("steps of rose's own agent in a JVM are ignored", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i)
                                .faulted(103)
                                .does(104, "openat", "/run/rose.jvm/n1/1.stacks")
                                .prints(105, 7, "Picked up JAVA_TOOL_OPTIONS: -agentpath:/x"));
    one.add(Group::sound, usual(2 * i + 1));
  }
  CHECK(one.explain().verdict == explain::Verdict::nothing_found);
}

TEST_CASE("steps between the last common step and the fault are not reported as missing", "[explain]") {
  // The fault comes before the workload, after the message `ready`, whose time varies. Only the start is the same in
  // all runs.
  Case early, stepped;
  for (int i = 0; i < 5; ++i) {
    early.add(Group::failing, script::Run(2 * i).prints(-400 + 10 * i, 3, "ready").faulted(-300));
    early.add(Group::sound, script::Run(2 * i + 1).prints(-200 + 10 * i, 3, "ready"));
    stepped.add(Group::failing,
                script::Run(2 * i).enters(100, "begin").prints(150, 3, "ready").faulted(160).enters(300, "end"));
    stepped.add(Group::sound, script::Run(2 * i + 1).enters(100, "begin").prints(150, 3, "ready").enters(300, "end"));
  }
  CHECK(early.explain().verdict == explain::Verdict::nothing_found);
  CHECK(stepped.explain().verdict == explain::Verdict::nothing_found);
}

TEST_CASE("a repeated step that stops in failing runs after the fault is reported as missing", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    // The number of these steps before the fault differs from run to run, so the comparison begins at about the same
    // time.
    script::Run failing(2 * i), sound(2 * i + 1);
    for (int ms = 1000 + 500 * i; ms < 8000; ms += 4) {
      if (ms < 4000) failing.does(ms, "fdatasync", "/data/journal");
      sound.does(ms, "fdatasync", "/data/journal");
    }
    one.add(Group::failing, failing.faulted(4010).ends(9000));
    one.add(Group::sound, sound.ends(9000));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  CHECK(std::any_of(e.differences.begin(), e.differences.end(), [](const auto& difference) {
    return difference.missing && difference.words.starts_with("fdatasync");
  }));
}

TEST_CASE("a step of failing runs is reported even if it occurs on different nodes", "[explain]") {
  Case one;
  for (int i = 0; i < 5; ++i) {
    one.add(Group::failing, usual(2 * i).faulted(103).enters(400, "lead", 4, i % 2 == 0 ? "n2" : "n3"));
    one.add(Group::sound, usual(2 * i + 1));
  }
  const explain::Explanation e = one.explain();
  CHECK(e.verdict == explain::Verdict::explained);
  CHECK(reports(e, "enters lead"));
  REQUIRE_FALSE(e.suspects.empty());
  CHECK(std::any_of(e.story.begin(), e.story.end(),
                    [](const auto& line) { return line.node == "n2" && line.text.starts_with("enters lead"); }));
}

TEST_CASE("a step of the bug on varying nodes is reported beside effects of the fault", "[explain]") {
  Case one;
  for (int i = 0; i < 6; ++i) {
    const auto node = [&](int turn) { return fmt::format("n{}", 2 + (i + turn) % 3); };
    one.add(Group::failing, usual(3 * i).faulted(103).enters(200, "recover").enters(300, "forget", 7, node(0)));
    one.add(Group::sound, usual(3 * i + 1));
    if (i < 3) one.add(Group::near, usual(3 * i + 2).faulted(103).enters(200, "recover"));
  }
  const explain::Explanation e = one.explain();
  REQUIRE(e.verdict == explain::Verdict::explained);
  REQUIRE_FALSE(e.suspects.empty());
  CHECK(e.suspects[0].function == "forget");
  CHECK(std::any_of(e.differences.begin(), e.differences.end(), [](const auto& difference) {
    return difference.only_bug && difference.node.empty() && difference.words.find("forget") != std::string::npos;
  }));
}

TEST_CASE("a failed lookup of one of many similar files is not a step", "[explain]") {
  const auto runs = [](int looked_up) {
    Case one;
    for (int i = 0; i < 5; ++i) {
      script::Run sound = usual(2 * i + 1), failing = usual(2 * i);
      for (int k = 0; k < looked_up; ++k)
        for (script::Run* run : {&sound, &failing})
          run->fails(20 + k, "newfstatat", 2, fmt::format("/opt/app/Part{}.class", static_cast<char>('A' + k)));
      one.add(Group::failing,
              failing.faulted(103).fails(104, "newfstatat", 2, "/opt/app/GivesUp.class").enters(105, "give_up"));
      one.add(Group::sound, sound.enters(104, "commit"));
    }
    return one.explain();
  };
  CHECK(reports(runs(3), "newfstatat fails with ENOENT (*/app/GivesUp.class)"));
  const explain::Explanation many = runs(25);
  CHECK_FALSE(reports(many, "newfstatat fails with ENOENT (*/app/GivesUp.class)"));
  CHECK(reports(many, "enters give_up"));
}

TEST_CASE("the fewest runs that can exclude chance are computed beforehand", "[explain]") {
  CHECK(explain::least_chance(3) > explain::kMostChance);
  CHECK(explain::least_chance(4) <= explain::kMostChance);
  CHECK(explain::fewest_runs() == 4);
}

TEST_CASE("a permutation test says how often chance separates the runs as well as the best of all steps does") {
  const auto of = [](std::initializer_list<int> runs) {  // which of the ten runs contain the step
    std::vector<bool> has(10);
    for (const int run : runs) has[static_cast<std::size_t>(run)] = true;
    return has;
  };
  explain::Permutations alone(5, 5);
  alone.add(of({0, 1, 2, 3, 4}));
  // 2 of 252 ways to label the runs: the true one, and the one with the two sides exchanged
  CHECK(alone.chance(1) == Approx(2.0 / 252));
  CHECK(alone.chance(0.6) == Approx((2 + 2 * 25) / 252.0));  // in addition, the ways that exchange one run of each side
  CHECK(alone.chance(0) == 1);

  // Each further step that separates the runs in another way adds the same amount to the probability.
  explain::Permutations beside(5, 5);
  beside.add(of({0, 1, 2, 3, 4}));
  beside.add(of({0, 2, 4, 6, 8}));
  beside.add(of({1, 3, 5, 7, 9}));  // the opposite of the step before
  CHECK(beside.chance(1) == Approx(4.0 / 252));

  // There are too many ways to label the runs, so a fixed sample of them is tried.
  explain::Permutations many(20, 20);
  std::vector<bool> has(40);
  std::fill(has.begin(), has.begin() + 20, true);
  many.add(has);
  CHECK(many.chance(1) < 0.001);
  CHECK(many.chance(0) == 1);

  CHECK(explain::Permutations(0, 5).chance(1) == 1);
}
