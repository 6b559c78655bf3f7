// Rates, their intervals and the sequential test. They are compared with published values, and with the bounds that are
// documented in schedule/rate.h.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "schedule/rate.h"
#include "schedule/schedule.h"

using namespace rose;
using namespace rose::schedule;

namespace {

RunResult run_of(OracleAnswer oracle, const Schedule& schedule, const std::set<std::string>& fired) {
  RunResult result;
  result.oracle = oracle;
  for (const Fault& fault : schedule.faults) {
    FaultOutcome outcome;
    outcome.id = fault.id;
    outcome.fired = fired.contains(fault.id);
    result.faults.push_back(outcome);
  }
  judge(result, schedule, "");
  return result;
}

Schedule two_faults() {
  Schedule schedule;
  for (const char* id : {"a", "b"}) {
    Fault fault;
    fault.id = id;
    fault.kind = FaultKind::crash;
    fault.node = "n1";
    schedule.faults.push_back(fault);
  }
  return schedule;
}

double choose(int n, int k) { return std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0)); }

}  // namespace

TEST_CASE("the exact interval has its published values") {
  struct Row {
    int reproduced;
    int not_reproduced;
    double low;
    double high;
  };
  // The values are those of Newcombe, Statistics in Medicine 17 (1998), table I, method 5: 81/263, 15/148, 0/20, 1/29;
  // and 8/10, 10/10.
  const Row rows[] = {{81, 182, 0.2527, 0.3676}, {15, 133, 0.0578, 0.1617}, {0, 20, 0.0000, 0.1684},
                      {1, 28, 0.0009, 0.1776},   {8, 2, 0.4439, 0.9748},    {10, 0, 0.6915, 1.0000}};
  for (const Row& row : rows) {
    const Tally tally{row.reproduced, row.not_reproduced, 7};
    CHECK(tally.interval().first == Approx(row.low).margin(0.0001));
    CHECK(tally.interval().second == Approx(row.high).margin(0.0001));
  }
  CHECK(Tally{}.interval() == std::pair<double, double>{0, 1});
  CHECK(Tally{0, 0, 5}.rate() == 0);
  CHECK(Tally{0, 9, 0}.interval().first == 0);
  CHECK(Tally{9, 0, 0}.interval().second == 1);
}

TEST_CASE("the interval covers the true rate as often as stated, at any rate") {
  for (const int n : {1, 5, 10, 20, 40}) {
    std::vector<std::pair<double, double>> intervals;
    for (int k = 0; k <= n; ++k) intervals.push_back(Tally{k, n - k, 0}.interval());
    for (double rate = 0.005; rate < 1; rate += 0.005) {
      double covered = 0;
      for (int k = 0; k <= n; ++k)
        if (intervals[static_cast<std::size_t>(k)].first <= rate &&
            rate <= intervals[static_cast<std::size_t>(k)].second)
          covered += choose(n, k) * std::pow(rate, k) * std::pow(1 - rate, n - k);
      INFO(n << " runs at " << rate);
      CHECK(covered >= 0.95 - 1e-9);
    }
  }
}

TEST_CASE("a tally counts verdicts") {
  Tally tally;
  for (const Verdict verdict :
       {Verdict::reproduced, Verdict::reproduced, Verdict::not_reproduced, Verdict::inconclusive})
    tally.add(verdict);
  CHECK(tally.runs() == 4);
  CHECK(tally.conclusive() == 3);
  CHECK(tally.rate() == Approx(2.0 / 3));
}

TEST_CASE("the sequential test has exactly its stated error rates") {
  const RateTest first(0.8, 1);
  CHECK(first.perfect() == 8);
  CHECK(first.answer({7, 0, 0}) == RateTest::Answer::open);
  CHECK(first.answer({8, 0, 0}) == RateTest::Answer::accepted);
  CHECK(first.answer({0, 3, 0}) == RateTest::Answer::open);
  CHECK(first.answer({0, 4, 0}) == RateTest::Answer::rejected);
  CHECK(first.answer({30, 10, 0}) == RateTest::Answer::accepted);
  CHECK(first.answer({29, 11, 0}) == RateTest::Answer::rejected);
  CHECK(first.acceptance(0.5) < 0.01);
  CHECK(first.acceptance(0.6) < 0.06);
  CHECK(first.acceptance(0.8) > 0.80);
  CHECK(first.acceptance(0.9) > 0.98);
  CHECK(first.acceptance(1.0) == Approx(1));
}

TEST_CASE("at most one search in ten accepts a schedule whose rate is 75 % of the target") {
  double wrong = 0;
  for (int test_number = 1; test_number <= 8; ++test_number) {
    wrong += RateTest(0.8, test_number).acceptance(0.6);
    CHECK(RateTest(0.8, test_number).acceptance(0.9) > 0.95);
  }
  CHECK(wrong <= 0.1);
  // For other targets, the error probabilities must be about as small.
  for (const double target : {0.3, 0.5, 0.9, 1.0}) {
    INFO(target);
    const RateTest test(target, 1);
    CHECK(test.too_low() <= target * 0.75 + 1e-9);
    CHECK(test.too_low() > target * 0.3);
    CHECK(test.acceptance(test.too_low()) < 0.1);
    CHECK(test.acceptance(target) > 0.75);
  }
}

TEST_CASE("a test with fewer runs is not wrong more often") {
  for (const double target : {0.3, 0.5, 0.8, 0.95})
    for (const int test_number : {1, 2, 3}) {
      const RateTest whole(target, test_number);
      for (int most = 1; most < kMostTestRuns; ++most) {
        const RateTest shorter(target, test_number, most);
        INFO(target << ", test_number " << test_number << ", " << most << " runs");
        CHECK(shorter.acceptance(shorter.too_low()) <= whole.acceptance(whole.too_low()) + 1e-6);
        for (int hits = 0; hits <= most; ++hits)
          CHECK(shorter.answer({hits, most - hits, 0}) != RateTest::Answer::open);
      }
    }
  CHECK(RateTest(0.8, 1, 24).acceptance(0.8) > 0.65);
  CHECK(RateTest(0.8, 1, 24).acceptance(0.9) > 0.97);
}

TEST_CASE("screening passes schedules worth testing, and with the test errs more rarely") {
  const RateTest screening = RateTest::screening(0.8);
  CHECK(screening.perfect() == 3);
  CHECK(screening.answer({2, 0, 0}) == RateTest::Answer::open);
  CHECK(screening.answer({3, 0, 0}) == RateTest::Answer::accepted);
  CHECK(screening.answer({0, 4, 0}) == RateTest::Answer::rejected);
  CHECK(screening.acceptance(0.3) == Approx(0.03).margin(0.005));
  CHECK(screening.acceptance(0.6) == Approx(0.37).margin(0.01));
  CHECK(screening.acceptance(0.8) == Approx(0.94).margin(0.01));
  // The screening and the test use different runs, so the probabilities multiply. A schedule that was found may be
  // tested in three forms, each of which counts as a test.
  double wrong = 0;
  for (int test_number = 1; test_number <= 24; ++test_number)
    wrong += screening.acceptance(0.6) * RateTest(0.8, test_number).acceptance(0.6);
  CHECK(wrong < 0.06);  // the probability for a whole search, whatever it tests
}

TEST_CASE("no run is made after the test has its answer") {
  for (const int test_number : {1, 2, 3}) {
    const RateTest test(0.8, test_number);
    for (int hits = 0; hits <= 20; ++hits)
      for (int misses = 0; misses <= 5; ++misses) {
        const Tally tally{hits, misses, 0};
        const int least = test.least_left(tally);
        CHECK((least == 0) == (test.answer(tally) != RateTest::Answer::open));
        for (int some = 0; some < least; ++some)
          CHECK(test.answer({hits + some, misses + least - 1 - some, 0}) == RateTest::Answer::open);
      }
  }
}

TEST_CASE("the interval after a sequential test covers the true rate as often as stated") {
  for (const int test_number : {1, 3})
    for (const int most : {20, kMostTestRuns}) {
      const RateTest test(0.8, test_number, most);
      // All tallies at which the test ends, with their intervals.
      std::map<std::pair<int, int>, std::pair<double, double>> ends;
      std::set<std::pair<int, int>> seen_open;
      const std::function<void(Tally)> walk = [&](Tally tally) {
        if (test.answer(tally) != RateTest::Answer::open) {
          const auto at = std::pair(tally.reproduced, tally.not_reproduced);
          if (!ends.contains(at)) ends.emplace(at, test.interval(tally));
          return;
        }
        if (!seen_open.insert({tally.reproduced, tally.not_reproduced}).second) return;
        walk({tally.reproduced + 1, tally.not_reproduced, 0});
        walk({tally.reproduced, tally.not_reproduced + 1, 0});
      };
      walk({});
      for (double rate = 0.05; rate < 1; rate += 0.05) {
        // The probability of each tally at which the test goes on, for one number of runs after another.
        std::map<std::pair<int, int>, double> open{{{0, 0}, 1.0}};
        double covered = 0;
        while (!open.empty()) {
          std::map<std::pair<int, int>, double> next;
          for (const auto& [at, chance] : open)
            for (const bool hit : {true, false}) {
              const auto then = std::pair(at.first + (hit ? 1 : 0), at.second + (hit ? 0 : 1));
              const double share = chance * (hit ? rate : 1 - rate);
              if (const auto end = ends.find(then); end == ends.end()) next[then] += share;
              else if (end->second.first <= rate && rate <= end->second.second) covered += share;
            }
          open = std::move(next);
        }
        INFO("test_number " << test_number << ", " << most << " runs at most, a rate of " << rate);
        CHECK(covered >= 0.95 - 1e-6);
      }
    }
  // If no run missed, the number of runs gives no additional information, so the interval equals the exact interval.
  CHECK(RateTest(0.8).interval({8, 0, 0}).first == Approx(Tally{8, 0, 0}.interval().first).margin(1e-6));
  // For a tally at which the test has not ended, the interval is also the exact one.
  CHECK(RateTest(0.8).interval({5, 1, 0}) == Tally{5, 1, 0}.interval());
}

TEST_CASE("the outcomes of runs show whether a rate is likely, without a test") {
  const RateTest test(0.8);
  CHECK(test.likely({8, 2, 0}));
  CHECK(test.likely({10, 0, 0}));
  CHECK_FALSE(test.likely({6, 4, 0}));
  CHECK_FALSE(test.likely({0, 1, 0}));
}

TEST_CASE("the test ends with any sequence of verdicts") {
  for (const int test_number : {1, 2, 3})
    for (const double target : {0.05, 0.8, 1.0}) {
      const RateTest test(target, test_number);
      for (int hits = 0; hits <= kMostTestRuns; ++hits)
        CHECK(test.answer({hits, kMostTestRuns - hits, 0}) != RateTest::Answer::open);
    }
}

TEST_CASE("the probability that a difference is due to chance equals Fisher's exact test") {
  // The example of R. A. Fisher, The Design of Experiments (1935): 3 of 4 are compared with 1 of 4.
  CHECK(chance_of_more(3, 4, 1, 4) == Approx(17.0 / 70));
  CHECK(chance_of_more(4, 4, 0, 4) == Approx(1.0 / 70));
  CHECK(chance_of_more(8, 8, 0, 2) == Approx(1.0 / 45));
  CHECK(chance_of_more(0, 8, 0, 2) == Approx(1));
  CHECK(chance_of_more(5, 5, 5, 5) == Approx(1));
}

TEST_CASE("a run that misses without a fault counts as a miss if hits have shown that the fault is not needed") {
  const Schedule schedule = two_faults();
  Series series;
  series.add(run_of(OracleAnswer::miss, schedule, {"a"}), schedule);
  CHECK(series.tally().inconclusive == 1);  // the bug may not have occurred because `b` did not fire
  series.add(run_of(OracleAnswer::hit, schedule, {"a"}), schedule);
  CHECK(series.tally().inconclusive == 0);  // the hit shows that `b` is not needed, so the first run is a miss
  CHECK(series.tally().not_reproduced == 1);
  series.add(run_of(OracleAnswer::miss, schedule, {"b"}), schedule);
  CHECK(series.tally().inconclusive == 1);
  series.add(run_of(OracleAnswer::miss, schedule, {"a", "b"}), schedule);
  CHECK(series.tally().not_reproduced == 2);
  series.add(run_of(OracleAnswer::unknown, schedule, {"a", "b"}), schedule);
  CHECK(series.tally().inconclusive == 2);
}

TEST_CASE("a rate is not overestimated if a fault often fails to fire") {
  // `b` fires in 30 % of the runs and has no influence on the bug, which occurs in 60 % of all runs.
  const Schedule schedule = two_faults();
  std::mt19937 random(7);
  std::uniform_real_distribution<double> dice;
  double rates = 0;
  double one_sided = 0;
  constexpr int kSeries = 400;
  for (int i = 0; i < kSeries; ++i) {
    Series series;
    Tally single;
    for (int run = 0; run < 40; ++run) {
      const bool both = dice(random) < 0.3;
      const RunResult result = run_of(dice(random) < 0.6 ? OracleAnswer::hit : OracleAnswer::miss, schedule,
                                      both ? std::set<std::string>{"a", "b"} : std::set<std::string>{"a"});
      series.add(result, schedule);
      single.add(result.verdict);
    }
    rates += series.tally().rate();
    one_sided += single.rate();
  }
  CHECK(one_sided / kSeries > 0.8);  // if each run gets its verdict separately, the rate is too high
  CHECK(rates / kSeries == Approx(0.6).margin(0.01));
}

TEST_CASE("alternatives of one group count as one fault") {
  Schedule schedule = two_faults();
  for (Fault& fault : schedule.faults) fault.group = "g";
  Series series;
  series.add(run_of(OracleAnswer::hit, schedule, {"a"}), schedule);
  series.add(run_of(OracleAnswer::miss, schedule, {"b"}), schedule);
  CHECK(series.tally().reproduced == 1);
  CHECK(series.tally().not_reproduced == 1);
}
