// Statistics of repeated runs: the replay rate, whether it reaches the target, and whether it is higher than by chance.
// Pure arithmetic.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/outcome.h"

namespace rose::schedule {

struct Tally {
  int reproduced = 0;
  int not_reproduced = 0;
  int inconclusive = 0;

  void add(Verdict verdict);
  [[nodiscard]] int runs() const { return reproduced + not_reproduced + inconclusive; }
  [[nodiscard]] int conclusive() const { return reproduced + not_reproduced; }
  // The replay rate: reproduced / conclusive. 0 if no run was conclusive.
  [[nodiscard]] double rate() const;
  // The exact 95 % interval: whatever the true rate is, the interval contains it in at least 95 % of all series (C. J.
  // Clopper, E. S. Pearson, Biometrika 26, 1934). [0, 1] if no run was conclusive.
  [[nodiscard]] std::pair<double, double> interval() const;
};

// Collects the runs of one schedule. By itself, a run in which the bug was not reproduced and a fault was not effective
// is inconclusive, because that fault may have been necessary. If, however, another run reproduced the bug with fewer
// effective faults, then these are sufficient, and a run in which all of them were effective is a miss. If these misses
// were not counted, only the hits among such runs would be, and the rate would be overestimated.
class Series {
 public:
  void add(const RunResult& result, const Schedule& schedule);
  [[nodiscard]] Tally tally() const;

 private:
  using Units = std::set<std::string>;  // effective faults, and groups of which one fault was effective
  Tally counted_;
  std::vector<Units> enough_;      // sets of faults with which the bug was reproduced
  std::vector<Units> unfinished_;  // misses in which not all faults were effective
};

inline constexpr int kMostTestRuns = 40;

// Tests whether a schedule reproduces the bug at the target rate, or at a clearly lower rate. For a target of 0.8, the
// lower rate is 0.6; for a higher target, it is three quarters of the target. For a lower target, the lower rate is as
// far from the target as 0.6 is from 0.8 on the scale arcsin(sqrt(rate)), on which the variance does not depend on the
// rate. Uses Wald's sequential test (A. Wald, Ann. Math. Stat. 16, 1945), truncated: each run is weighed when it ends,
// and the test ends as soon as the answer is certain enough. A schedule that never misses is accepted after 8 runs.
//
// Assumption: runs of one schedule are independent and have the same rate. If the machine becomes busier during a test,
// this is not true, and no test notices that.
//
// Each further schedule that a search tests may be accepted wrongly, too. Later tests are therefore stricter: all tests
// of a search together accept a schedule with a rate of 0.6 in at most one of ten searches.
class RateTest {
 public:
  enum class Answer { open, accepted, rejected };
  struct Strictness;

  // `test_number`: the number of this schedule among those that the search tests, from 1. Later ones are tested more
  // strictly, because each test may err. `most`: the limit of runs, up to kMostTestRuns. With a smaller limit, the test
  // requires a larger share of hits. It then accepts a schedule that has the lower rate no more often than the full
  // test does, at the cost of rejecting a schedule at the target more often.
  explicit RateTest(double target, int test_number = 1, int most = kMostTestRuns);
  // A test that decides only whether a schedule is worth minimising and testing. It requires three hits in a row, or
  // equally strong evidence. It accepts a schedule with a rate of 0.6 in 37 % of all cases and one with a rate of 0.3
  // in 3 %, and rejects one with a rate of 0.8 in 6 %. The runs of a screening do not count for the replay rate: only
  // schedules that passed it are measured, so these runs have too many hits on average.
  [[nodiscard]] static RateTest screening(double target);

  [[nodiscard]] Answer answer(const Tally& tally) const;
  // The smallest number of further runs after which the test may decide. That many runs may be made in parallel without
  // waste. 0: the test has decided.
  [[nodiscard]] int least_left(const Tally& tally) const;
  // True if these runs make the target more likely than the lower rate. This alone is no test, because it may be due to
  // chance.
  [[nodiscard]] bool likely(const Tally& tally) const;
  // The lower rate, at which a schedule must be rejected.
  [[nodiscard]] double too_low() const { return bad_; }
  // The number of runs after which a schedule without a miss is accepted.
  [[nodiscard]] int perfect() const { return perfect_; }
  // The exact probability that a schedule with this true rate is accepted.
  [[nodiscard]] double acceptance(double rate) const;
  // The exact 95 % interval of the rate after a test that ended with this tally. It takes into account that the number
  // of runs depended on their outcomes. Its limits are two rates. At the lower one, a test ends with this share of hits
  // or a higher one with a probability of 2.5 %; at the upper one, it ends with this share or a lower one with the same
  // probability (order by the sample mean: S. S. Emerson, T. R. Fleming, Biometrika 77, 1990). If no test ends with
  // this tally, because runs were made in parallel or were interrupted, it is the interval of Tally.
  [[nodiscard]] std::pair<double, double> interval(const Tally& tally) const;

 private:
  RateTest(double target, const Strictness& strict, int most);
  // Calls `end(tally, probability)` for each way in which a test can end, if the schedule has this rate.
  template <typename End>
  void play(double rate, const End& end) const;

  double bad_ = 0;
  double hit_ = 0, miss_ = 0;       // log likelihood ratios that a hit and a miss contribute
  double accept_ = 0, reject_ = 0;  // sums at which the test accepts and rejects
  int perfect_ = 0;
  int most_ = kMostTestRuns;
  int least_hits_ = 0;  // number of hits needed if all `most_` runs are made
};

// The probability of at least `hits` hits in `runs` runs, if these runs do not differ from `others` other runs, which
// had `other_hits` hits: R. A. Fisher's exact test, one-sided.
[[nodiscard]] double chance_of_more(int hits, int runs, int other_hits, int others);

// The upper bound (95 %, one-sided) of the rate if none of `conclusive` runs was a hit: 1 - 0.05^(1/n).
[[nodiscard]] double upper_bound_without_hit(int conclusive);

}  // namespace rose::schedule
