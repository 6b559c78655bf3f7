// Rates of repeated runs, and when enough runs have been made.
#pragma once

#include <string>
#include <utility>

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
  // Wilson score interval, 95 % (E. B. Wilson, JASA 22, 1927); [0, 1] without conclusive runs.
  [[nodiscard]] std::pair<double, double> interval() const;
};

// Can the outcome "rate >= target" of `planned` runs still change? False once it is decided either
// way, also when inconclusive runs leave too few.
[[nodiscard]] bool undecided(const Tally& tally, double target, int planned);

// Would a schedule whose rate is `target` or more almost never (in 1 of 100 cases, however often one looks) show such
// runs? Wald's sequential test of the target against half of it (A. Wald, Ann. Math. Stat. 16, 1945).
[[nodiscard]] bool hopeless(const Tally& tally, double target);

// Upper bound (95 %, one-sided) of the rate after `conclusive` runs without a hit: 1 - 0.05^(1/n).
[[nodiscard]] double upper_bound_without_hit(int conclusive);

}  // namespace rose::schedule
