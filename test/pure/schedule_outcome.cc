// Verdicts of runs and rates of many.
#include <catch2/catch.hpp>
#include <cmath>

#include "schedule/outcome.h"
#include "schedule/rate.h"
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

TEST_CASE("a verdict follows from the oracle and from what fired") {
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
      {unknown, {}, {}, Verdict::inconclusive, "the oracle could not tell: it exited with status 2"},
      {unknown, one, {outcome("a", true)}, Verdict::inconclusive, "the oracle could not tell: it exited with status 2"},
      {hit, one, {outcome("a", true)}, Verdict::reproduced, "the oracle found the bug after fault 'a' fired"},
      {miss, one, {outcome("a", true)}, Verdict::not_reproduced,
       "every planned fault fired and the oracle did not find the bug"},
      {hit, one, {outcome("a", false, "no openat of */log was made")}, Verdict::inconclusive,
       "the bug shows without faults: the oracle found it, but fault 'a' did not fire: no openat of */log was made"},
      {miss, one, {outcome("a", false, "no openat of */log was made")}, Verdict::inconclusive,
       "fault 'a' did not fire: no openat of */log was made"},
      {miss, one, {}, Verdict::inconclusive, "fault 'a' did not fire: the run says nothing of it"},
      {miss, one, {outcome("a", false)}, Verdict::inconclusive, "fault 'a' did not fire: its conditions were not met"},
      {hit, two, {outcome("a", true), outcome("b", false, "n1 was down")}, Verdict::reproduced,
       "the oracle found the bug after fault 'a' fired; fault 'b' did not fire: n1 was down"},
      {hit, two, {outcome("b", true), outcome("a", true)}, Verdict::reproduced,
       "the oracle found the bug after faults 'a' and 'b' fired"},
      {miss, two, {outcome("a", true), outcome("b", false, "n1 was down")}, Verdict::inconclusive,
       "fault 'b' did not fire: n1 was down"},
      // One of a group is enough.
      {miss, group, {outcome("a", false), outcome("b", true), outcome("c", true)}, Verdict::not_reproduced,
       "every planned fault fired and the oracle did not find the bug"},
      {miss, group, {outcome("a", false, "f was never entered"), outcome("b", false), outcome("c", true)},
       Verdict::inconclusive, "no fault of group 'g' fired: 'a': f was never entered"},
      {miss, group, {outcome("a", true), outcome("b", false), outcome("c", false, "x")}, Verdict::inconclusive,
       "fault 'c' did not fire: x"},
  };
  for (const Row& row : rows) {
    const RunResult result = judged(row.oracle, row.faults, row.outcomes);
    CHECK(verdict_name(result.verdict) == verdict_name(row.verdict));
    CHECK(result.reason == row.reason);
  }
  CHECK(verdict_name(Verdict::not_reproduced) == "not-reproduced");
}

TEST_CASE("the Wilson interval has its known values") {
  struct Row {
    int reproduced;
    int not_reproduced;
    double low;
    double high;
  };
  // Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81/263, 15/148, 0/20, 1/29; and 8/10, 10/10.
  const Row rows[] = {{81, 182, 0.2553, 0.3662}, {15, 133, 0.0624, 0.1605}, {0, 20, 0.0000, 0.1611},
                      {1, 28, 0.0061, 0.1718},   {8, 2, 0.4902, 0.9433},    {10, 0, 0.7225, 1.0000}};
  for (const Row& row : rows) {
    const Tally tally{row.reproduced, row.not_reproduced, 7};
    CHECK(tally.interval().first == Approx(row.low).margin(0.00005));
    CHECK(tally.interval().second == Approx(row.high).margin(0.00005));
  }
  CHECK(Tally{}.interval() == std::pair<double, double>{0, 1});
  CHECK(Tally{0, 0, 5}.rate() == 0);
  CHECK(Tally{0, 9, 0}.interval().first == 0);
  CHECK(Tally{9, 0, 0}.interval().second == 1);
}

TEST_CASE("a tally counts") {
  Tally tally;
  for (const Verdict verdict : {Verdict::reproduced, Verdict::reproduced, Verdict::not_reproduced, Verdict::inconclusive})
    tally.add(verdict);
  CHECK(tally.runs() == 4);
  CHECK(tally.conclusive() == 3);
  CHECK(tally.rate() == Approx(2.0 / 3));
}

TEST_CASE("runs go on while the outcome can change") {
  struct Row {
    Tally tally;
    double target;
    int planned;
    bool undecided;
  };
  const Row rows[] = {
      {{0, 0, 0}, 0.8, 10, true},    // nothing known
      {{7, 0, 0}, 0.8, 10, true},    // three misses would make 70 %
      {{8, 0, 0}, 0.8, 10, false},   // 80 % whatever comes
      {{0, 2, 0}, 0.8, 10, true},
      {{0, 3, 0}, 0.8, 10, false},   // at best 70 %
      {{7, 2, 0}, 0.8, 10, true},
      {{8, 2, 0}, 0.8, 10, false},   // all made
      {{1, 0, 0}, 1.0, 10, true},
      {{9, 1, 0}, 1.0, 20, false},
      {{0, 0, 5}, 0.8, 10, true},    // half may still be conclusive
      {{0, 0, 6}, 0.8, 10, false},   // too few are left
      {{2, 0, 3}, 0.1, 10, true},    // 2 of 5 conclusive is no majority yet
      {{3, 0, 3}, 0.1, 10, false},
      {{0, 0, 0}, 0.8, 1, true},
      {{0, 0, 0}, 0.8, 0, false},
      {{6, 0, 2}, 0.8, 10, true},    // 6/8 = 75 % is possible
      {{7, 0, 2}, 0.8, 10, false},   // 7/8
  };
  for (const Row& row : rows) {
    INFO(row.tally.reproduced << " " << row.tally.not_reproduced << " " << row.tally.inconclusive << " of " << row.planned);
    CHECK(undecided(row.tally, row.target, row.planned) == row.undecided);
  }
}

TEST_CASE("stopping early never changes the outcome") {
  // All continuations of each decided tally reach the same side of the target.
  for (const double target : {0.1, 0.5, 0.8, 1.0})
    for (int planned = 1; planned <= 8; ++planned)
      for (int r = 0; r <= planned; ++r)
        for (int n = 0; r + n <= planned; ++n)
          for (int i = 0; r + n + i <= planned; ++i) {
            const Tally now{r, n, i};
            if (undecided(now, target, planned) || 2 * now.conclusive() < now.runs()) continue;
            const int left = planned - now.runs();
            bool yes = false;
            bool no = false;
            for (int a = 0; a <= left; ++a)
              for (int b = 0; a + b <= left; ++b) {
                const Tally end{r + a, n + b, i + left - a - b};
                if (2 * end.conclusive() < end.runs()) continue;
                (end.rate() + 1e-9 >= target ? yes : no) = true;
              }
            CHECK_FALSE((yes && no));
          }
}

TEST_CASE("the bound after runs without a hit") {
  CHECK(upper_bound_without_hit(0) == 1);
  CHECK(upper_bound_without_hit(1) == Approx(0.95));
  CHECK(upper_bound_without_hit(10) == Approx(0.2589).margin(0.0001));
  CHECK(upper_bound_without_hit(59) == Approx(0.0495).margin(0.0001));
}
