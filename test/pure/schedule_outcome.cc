// The verdict of a run, and the rate of many runs.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/json.h"
#include "schedule/outcome.h"
#include "schedule/rate.h"
#include "schedule/record.h"
#include "schedule/schedule.h"

using namespace rose::schedule;

namespace {

Fault fault(const std::string& id, const std::string& group = "") {
  Fault made;
  made.id = id;
  made.kind = FaultKind::crash;
  made.node = "n1";
  made.group = group;
  return made;
}

FaultOutcome outcome(const std::string& id, bool fired, const std::string& why_not = "") {
  FaultOutcome made;
  made.id = id;
  made.fired = fired;
  made.why_not = why_not;
  return made;
}

// The outcome of a fault that fired without effect.
FaultOutcome idle(const std::string& id, const std::string& why) {
  FaultOutcome made = outcome(id, true);
  made.no_effect = why;
  return made;
}

Fault optional(const std::string& id, const std::string& group = "") {
  Fault made = fault(id, group);
  made.optional = true;
  return made;
}

RunResult judged(OracleAnswer oracle, std::vector<Fault> faults, std::vector<FaultOutcome> outcomes) {
  RunResult result;
  result.oracle = oracle;
  result.faults = std::move(outcomes);
  Schedule schedule;
  schedule.faults = std::move(faults);
  judge(result, schedule, "it exited with status 2");
  return result;
}

}  // namespace

TEST_CASE("a verdict follows from the oracle and the effective faults") {
  struct Row {
    OracleAnswer oracle;
    std::vector<Fault> faults;
    std::vector<FaultOutcome> outcomes;
    Verdict verdict;
    std::string reason;
  };
  using enum OracleAnswer;
  const std::vector<Fault> one{fault("a")};
  const std::vector<Fault> two{fault("a"), fault("b")};
  const std::vector<Fault> group{fault("a", "g"), fault("b", "g"), fault("c")};
  const Row rows[] = {
      {hit, {}, {}, Verdict::reproduced, "the oracle found the bug; no fault was planned"},
      {miss, {}, {}, Verdict::not_reproduced, "the oracle did not find the bug; no fault was planned"},
      {unknown, {}, {}, Verdict::inconclusive, "the oracle could not decide: it exited with status 2"},
      {unknown,
       one,
       {outcome("a", true)},
       Verdict::inconclusive,
       "the oracle could not decide: it exited with status 2"},
      {hit, one, {outcome("a", true)}, Verdict::reproduced, "the oracle found the bug after fault 'a' fired"},
      {miss,
       one,
       {outcome("a", true)},
       Verdict::not_reproduced,
       "every planned fault was effective and the oracle did not find the bug"},
      {hit,
       one,
       {outcome("a", false, "no openat of */log was made")},
       Verdict::inconclusive,
       "reproduces without faults: the oracle found the bug, but fault 'a' did not fire: no openat of */log was made"},
      {miss,
       one,
       {outcome("a", false, "no openat of */log was made")},
       Verdict::inconclusive,
       "fault 'a' did not fire: no openat of */log was made"},
      {miss, one, {}, Verdict::inconclusive, "fault 'a' did not fire: the run has no record of it"},
      {miss, one, {outcome("a", false)}, Verdict::inconclusive, "fault 'a' did not fire: its conditions were not met"},
      {hit,
       two,
       {outcome("a", true), outcome("b", false, "n1 was down")},
       Verdict::reproduced,
       "the oracle found the bug after fault 'a' fired; fault 'b' did not fire: n1 was down"},
      {hit,
       two,
       {outcome("b", true), outcome("a", true)},
       Verdict::reproduced,
       "the oracle found the bug after faults 'a' and 'b' fired"},
      {miss,
       two,
       {outcome("a", true), outcome("b", false, "n1 was down")},
       Verdict::inconclusive,
       "fault 'b' did not fire: n1 was down"},
      // It is enough if one fault of a group fires.
      {miss,
       group,
       {outcome("a", false), outcome("b", true), outcome("c", true)},
       Verdict::not_reproduced,
       "every planned fault was effective and the oracle did not find the bug"},
      {miss,
       group,
       {outcome("a", false, "f was never entered"), outcome("b", false), outcome("c", true)},
       Verdict::inconclusive,
       "no fault of group 'g' fired: 'a': f was never entered"},
      {miss,
       group,
       {outcome("a", true), outcome("b", false), outcome("c", false, "x")},
       Verdict::inconclusive,
       "fault 'c' did not fire: x"},
      // A fault that fired without effect counts as one that did not fire.
      {hit,
       one,
       {idle("a", "no packet was stopped")},
       Verdict::inconclusive,
       "reproduces without faults: the oracle found the bug, but fault 'a' had no effect: no packet was stopped"},
      {miss,
       one,
       {idle("a", "no packet was stopped")},
       Verdict::inconclusive,
       "fault 'a' had no effect: no packet was stopped"},
      {hit,
       two,
       {outcome("a", true), idle("b", "n1 never reached the limit")},
       Verdict::reproduced,
       "the oracle found the bug after fault 'a' fired; fault 'b' had no effect: n1 never reached the limit"},
      {miss,
       two,
       {outcome("a", true), idle("b", "n1 never reached the limit")},
       Verdict::inconclusive,
       "fault 'b' had no effect: n1 never reached the limit"},
      {miss,
       group,
       {idle("a", "no packet was stopped"), outcome("b", false, "'a' of the same group fired first"),
        outcome("c", true)},
       Verdict::inconclusive,
       "fault 'a' had no effect: no packet was stopped"},
      {miss,
       group,
       {outcome("a", false, "x"), idle("b", "no packet was stopped"), outcome("c", true)},
       Verdict::inconclusive,
       "fault 'b' had no effect: no packet was stopped"},
      // In a miss, optional faults may be without effect. A hit counts only if some fault was effective.
      {miss,
       {fault("a"), optional("b")},
       {outcome("a", true), outcome("b", true)},
       Verdict::not_reproduced,
       "every planned fault was effective and the oracle did not find the bug"},
      {miss,
       {fault("a"), optional("b")},
       {outcome("a", true), outcome("b", false, "no call came")},
       Verdict::not_reproduced,
       "every planned fault that is not optional was effective and the oracle did not find the bug; optional fault 'b' "
       "did not fire: no call came"},
      {miss,
       {fault("a"), optional("b")},
       {outcome("a", true), idle("b", "no packet was stopped")},
       Verdict::not_reproduced,
       "every planned fault that is not optional was effective and the oracle did not find the bug; optional fault 'b' "
       "had no effect: no packet was stopped"},
      {miss,
       {fault("a"), optional("b")},
       {outcome("a", false, "no call came"), outcome("b", true)},
       Verdict::inconclusive,
       "fault 'a' did not fire: no call came"},
      {miss,
       {optional("a")},
       {outcome("a", false, "no call came")},
       Verdict::not_reproduced,
       "no fault had to be effective and the oracle did not find the bug; optional fault 'a' did not fire: no call "
       "came"},
      {hit,
       {optional("a")},
       {outcome("a", false, "no call came")},
       Verdict::inconclusive,
       "reproduces without faults: the oracle found the bug, but fault 'a' did not fire: no call came"},
      {miss,
       {optional("a", "g"), optional("b", "g"), fault("c")},
       {outcome("a", false, "x"), outcome("b", false, "y"), outcome("c", true)},
       Verdict::not_reproduced,
       "every planned fault was effective and the oracle did not find the bug"},
      {miss,
       {optional("a", "g"), fault("b", "g"), fault("c")},
       {outcome("a", false, "x"), outcome("b", false, "y"), outcome("c", true)},
       Verdict::inconclusive,
       "no fault of group 'g' fired: 'b': y"},
  };
  for (const Row& row : rows) {
    const RunResult result = judged(row.oracle, row.faults, row.outcomes);
    CHECK(verdict_name(result.verdict) == verdict_name(row.verdict));
    CHECK(result.reason == row.reason);
  }
  CHECK(verdict_name(Verdict::not_reproduced) == "not-reproduced");
}

TEST_CASE("a run that did no work is inconclusive, whatever the oracle answered") {
  for (const OracleAnswer answer : {OracleAnswer::hit, OracleAnswer::miss, OracleAnswer::unknown}) {
    RunResult result;
    result.oracle = answer;
    result.faults = {outcome("a", true)};
    result.doubt = "the workload exchanged no data with any node";
    Schedule schedule;
    schedule.faults = {fault("a")};
    judge(result, schedule, "it exited with status 2");
    CHECK(verdict_name(result.verdict) == "inconclusive");
    CHECK(result.reason == "the workload exchanged no data with any node");
    // In a series of runs, this run must not count as a hit or a miss, either.
    Series series;
    RunResult reproduced = result;
    reproduced.doubt.clear();
    reproduced.oracle = OracleAnswer::hit;
    judge(reproduced, schedule, "");
    series.add(reproduced, schedule);
    series.add(result, schedule);
    CHECK(series.tally().reproduced == 1);
    CHECK(series.tally().inconclusive == 1);
  }
}

TEST_CASE("a run in which an unneeded fault was not effective counts as a miss in a series") {
  Schedule schedule;
  schedule.faults = {fault("a"), fault("b")};
  const auto run = [&](OracleAnswer oracle, std::vector<FaultOutcome> outcomes) {
    RunResult result;
    result.oracle = oracle;
    result.faults = std::move(outcomes);
    judge(result, schedule, "");
    return result;
  };
  Series series;
  series.add(run(OracleAnswer::hit, {outcome("a", true), idle("b", "none")}), schedule);
  // this run counts as a miss, because the hit has shown that 'a' alone is sufficient
  series.add(run(OracleAnswer::miss, {outcome("a", true), idle("b", "none")}), schedule);
  series.add(run(OracleAnswer::miss, {idle("a", "none"), outcome("b", true)}), schedule);
  CHECK(series.tally().reproduced == 1);
  CHECK(series.tally().not_reproduced == 1);
  CHECK(series.tally().inconclusive == 1);
}

TEST_CASE("the upper bound of the rate after runs without a hit is computed") {
  CHECK(upper_bound_without_hit(0) == 1);
  CHECK(upper_bound_without_hit(1) == Approx(0.95));
  CHECK(upper_bound_without_hit(10) == Approx(0.2589).margin(0.0001));
  CHECK(upper_bound_without_hit(59) == Approx(0.0495).margin(0.0001));
}

TEST_CASE("fault outcomes with stacks are equal after being written and read back", "[schedule]") {
  FaultOutcome fault;
  fault.id = "full-disk";
  fault.fired = true;
  fault.no_effect = "no call lacked room";
  fault.conditions.push_back(
      {.met = true, .met_ns = -5, .seen = 2, .wanted = 2, .node = "n1", .words = "entry of append"});
  Stack stack;
  stack.node = "n1";
  stack.thread = "writer";
  stack.pid = 41;
  stack.tid = 44;
  stack.ns = 1'500'000'000;
  stack.why = "write(/data/log) fails with ENOSPC";
  stack.frames = {{.function = "write", .file = "", .line = 0, .module = "/usr/lib/libc.so.6", .offset = 0x10},
                  {.function = "Log::append(int)", .file = "log.cc", .line = 12, .module = "/srv/kv", .offset = 0x20}};
  stack.incomplete = "no symbols for /usr/lib/libc.so.6";
  fault.stacks.push_back(stack);

  const auto json = outcomes_json({fault});
  const auto back = outcomes_from(json);
  REQUIRE(back.has_value());
  CHECK(outcomes_json(*back) == json);
  REQUIRE(back->size() == 1);
  CHECK(back->front().no_effect == "no call lacked room");
  CHECK_FALSE(back->front().effective());
  // The records of an older rose contain no effects, so every fault that fired counts as effective.
  auto older = json;
  older[0].erase("no_effect");
  older[0].erase("effective");
  REQUIRE(outcomes_from(older));
  CHECK(outcomes_from(older)->front().effective());
  REQUIRE(back->front().stacks.size() == 1);
  const Stack& read = back->front().stacks.front();
  CHECK(read.thread == "writer");
  CHECK(read.frames.at(1).function == "Log::append(int)");
  CHECK(read.frames.at(1).line == 12);
  CHECK(read.frames.at(0).offset == 0x10);
}

TEST_CASE("faults that ended are distinguished from others, also if they ended at the workload's start", "[schedule]") {
  FaultOutcome open = outcome("open", true);
  FaultOutcome ended = outcome("ended", true);
  ended.ended_ns = 0;
  const auto json = outcomes_json({open, ended});
  CHECK(json.at(0).at("ended_ns") == 0);
  const auto back = outcomes_from(json);
  REQUIRE(back.has_value());
  CHECK_FALSE(back->at(0).ended_ns.has_value());
  CHECK(back->at(1).ended_ns.has_value());
}

TEST_CASE("records of an older rose without stacks are read", "[schedule]") {
  auto json = outcomes_json({outcome("a", true)});
  REQUIRE(json.at(0).erase("stacks") == 1);
  const auto back = outcomes_from(json);
  REQUIRE(back.has_value());
  CHECK(back->front().stacks.empty());
}

TEST_CASE("an order's outcome is equal after being written and read back") {
  const std::vector<OrderOutcome> order = {{"created", "event", true, -1'500'000, "", 250},
                                           {"asked", "step", false, 0, "it comes after 'cut', which did not come", 0}};
  const auto back = order_from(order_json(order));
  REQUIRE(back);
  REQUIRE(back->size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK((*back)[i].name == order[i].name);
    CHECK((*back)[i].kind == order[i].kind);
    CHECK((*back)[i].came == order[i].came);
    CHECK((*back)[i].ns == order[i].ns);
    CHECK((*back)[i].why_not == order[i].why_not);
    CHECK((*back)[i].held_ns == order[i].held_ns);
  }
  for (const char* wrong : {"[1]", "[{}]", "[{\"name\": 1, \"kind\": \"step\", \"came\": true}]"})
    CHECK_FALSE(order_from(rose::Json::parse(wrong)));
}
