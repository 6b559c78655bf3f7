// Rates of repeated runs: how often a schedule shows the bug, whether that is often enough, and whether it is more than
// chance. Pure arithmetic.
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
  // The replay rate: reproduced / conclusive; 0 without conclusive runs.
  [[nodiscard]] double rate() const;
  // Exact 95 % interval: it holds the true rate in at least 95 % of all series, whatever that rate is (C. J. Clopper,
  // E. S. Pearson, Biometrika 26, 1934); [0, 1] without conclusive runs.
  [[nodiscard]] std::pair<double, double> interval() const;
};

// The runs of one schedule. A single run in which the bug did not show and a fault was not effective is inconclusive:
// that fault may have been missing. But once the bug has shown with fewer faults, those that were effective then are
// known to be enough, and a run in which all of them were effective and nothing showed is a miss. Without that, hits
// would count in more runs than misses do, and a rate would read too high.
class Series {
 public:
  void add(const RunResult& result, const Schedule& schedule);
  [[nodiscard]] Tally tally() const;

 private:
  using Units = std::set<std::string>;  // effective faults, or groups of which one was effective
  Tally counted_;
  std::vector<Units> enough_;      // with which the bug has shown
  std::vector<Units> unfinished_;  // misses in which not everything was effective
};

// Does a schedule show the bug at the target rate, or at a clearly lower one: 0.6 where the target is 0.8, three
// quarters of it above that, and below it what is as far away by the arcsine of the root, in which rates spread alike?
// Wald's sequential test (A. Wald, Ann. Math. Stat. 16, 1945), cut off after kMostTestRuns: each run is weighed as it
// comes, and the test ends as soon as the answer is sure enough. A schedule that never misses is accepted after 8 runs.
//
// A search that tests several schedules gives chance as many tickets. So the later ones have to be surer: all tests of
// a search together accept a schedule of 0.6 in at most one search of ten.
class RateTest {
 public:
  enum class Answer { open, accepted, rejected };

  // `ticket`: schedules that the search tests are numbered; 1 is the first.
  explicit RateTest(double target, int ticket = 1);

  [[nodiscard]] Answer answer(const Tally& tally) const;
  // Do these runs speak for the target rather than for the lower rate? No test: what chance alone may say.
  [[nodiscard]] bool likely(const Tally& tally) const;
  // The lower rate.
  [[nodiscard]] double too_low() const { return bad_; }
  // Runs that a schedule needs which never misses.
  [[nodiscard]] int perfect() const { return perfect_; }
  // How likely a schedule of that true rate is accepted, exactly.
  [[nodiscard]] double acceptance(double rate) const;

 private:
  double bad_ = 0;
  double hit_ = 0, miss_ = 0;       // what a run weighs: log likelihood ratios
  double accept_ = 0, reject_ = 0;  // sums at which the answer is sure
  int perfect_ = 0;
  int least_hits_ = 0;  // of kMostTestRuns, when they are all made
};

inline constexpr int kMostTestRuns = 40;

// How likely `hits` or more of `runs` would have shown the bug if these runs were no different from the `others` (of
// which `other_hits` showed it): R. A. Fisher's exact test, one-sided.
[[nodiscard]] double chance_of_more(int hits, int runs, int other_hits, int others);

// Upper bound (95 %, one-sided) of the rate after `conclusive` runs without a hit: 1 - 0.05^(1/n).
[[nodiscard]] double upper_bound_without_hit(int conclusive);

}  // namespace rose::schedule
