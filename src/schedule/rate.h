// Statistics of repeated runs: the replay rate, whether it reaches the target, and whether it is more than chance. Pure
// arithmetic.
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
  // The replay rate, reproduced / conclusive; 0 without conclusive runs.
  [[nodiscard]] double rate() const;
  // Exact 95 % interval: it contains the true rate in at least 95 % of all series for any rate (C. J. Clopper, E. S.
  // Pearson, Biometrika 26, 1934). [0, 1] without conclusive runs.
  [[nodiscard]] std::pair<double, double> interval() const;
};

// Collects the runs of one schedule. Alone, a run in which the bug was not reproduced and a fault was not
// effective is inconclusive, because that fault may have been necessary. But if another run has reproduced the bug with
// fewer faults, then the effective ones are sufficient, and a run in which all of them were effective is a miss.
// Otherwise hits would be counted in more runs than misses, and the rate would be overestimated.
class Series {
 public:
  void add(const RunResult& result, const Schedule& schedule);
  [[nodiscard]] Tally tally() const;

 private:
  using Units = std::set<std::string>;  // effective faults, or groups of which one was effective
  Tally counted_;
  std::vector<Units> enough_;      // sets of faults with which the bug was reproduced
  std::vector<Units> unfinished_;  // misses in which not all faults were effective
};

inline constexpr int kMostTestRuns = 40;

// Tests whether a schedule reproduces the bug at the target rate or at a clearly lower one: 0.6 for a target of 0.8,
// three quarters of a higher target, and for a lower target the rate at the same distance in arcsin(sqrt(rate)), a
// scale on which the variance does not depend on the rate. Uses Wald's sequential test (A. Wald, Ann. Math. Stat. 16,
// 1945), truncated: each run is weighed as it arrives and the test ends as soon as the answer is certain enough. A
// schedule that never misses is accepted after 8 runs.
//
// Assumption: runs of one schedule are independent and have one rate. A machine that becomes busier during a test
// violates it; no test notices that.
//
// Each further schedule that a search tests is another chance for a false acceptance. Later tests are therefore
// stricter: all tests of a search together accept a schedule of 0.6 in at most one of ten searches.
class RateTest {
 public:
  enum class Answer { open, accepted, rejected };
  struct Strictness;

  // `test_number`: the number of this schedule among those that the search tests, from 1; later ones are tested more
  // strictly, because each test may err. `most`: the limit of its runs, at most kMostTestRuns. A lower limit requires a
  // higher rate, so that a schedule of the lower rate is accepted no more often; one at the target is accepted more
  // rarely.
  explicit RateTest(double target, int test_number = 1, int most = kMostTestRuns);
  // Decides only whether a schedule is worth minimising and testing: three hits in a row, or equally strong evidence.
  // It accepts a schedule of 0.6 in 37 % of all cases and one of 0.3 in 3 %, and rejects one of 0.8 in 6 %. Its runs
  // influence a choice, so they do not count for the rate.
  [[nodiscard]] static RateTest screening(double target);

  [[nodiscard]] Answer answer(const Tally& tally) const;
  // The minimum number of further runs until a decision: that many may be made in parallel without waste. 0: the test
  // has decided.
  [[nodiscard]] int least_left(const Tally& tally) const;
  // True if these runs make the target more likely than the lower rate. Not a test: chance alone may lead to this.
  [[nodiscard]] bool likely(const Tally& tally) const;
  // The lower rate, which must be rejected.
  [[nodiscard]] double too_low() const { return bad_; }
  // The number of runs after which a schedule without a miss is accepted.
  [[nodiscard]] int perfect() const { return perfect_; }
  // The exact probability that a schedule with this true rate is accepted.
  [[nodiscard]] double acceptance(double rate) const;
  // The exact 95 % interval of the rate after a test that ended with this tally. It accounts for the fact that the
  // number of runs depended on their outcome: the limits are the rates at which a test that ends with as high, or as
  // low, a share of hits has a probability of 2.5 % (order by the sample mean: S. S. Emerson, T. R. Fleming, Biometrika
  // 77, 1990). A tally that ends no test, because runs were made in parallel or were interrupted, has the interval of
  // Tally.
  [[nodiscard]] std::pair<double, double> interval(const Tally& tally) const;

 private:
  RateTest(double target, const Strictness& strict, int most);
  // Calls `end(tally, probability)` for each way in which a test of this rate can end.
  template <typename End>
  void play(double rate, const End& end) const;

  double bad_ = 0;
  double hit_ = 0, miss_ = 0;       // log likelihood ratios that a run contributes
  double accept_ = 0, reject_ = 0;  // sums at which the test ends
  int perfect_ = 0;
  int most_ = kMostTestRuns;
  int least_hits_ = 0;  // hits needed if all `most_` runs are made
};

// The probability of at least `hits` hits in `runs` if these runs do not differ from the `others` (with `other_hits`):
// R. A. Fisher's exact test, one-sided.
[[nodiscard]] double chance_of_more(int hits, int runs, int other_hits, int others);

// Upper bound (95 %, one-sided) for the rate after `conclusive` runs without a hit: 1 - 0.05^(1/n).
[[nodiscard]] double upper_bound_without_hit(int conclusive);

}  // namespace rose::schedule
