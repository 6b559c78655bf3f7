#include "diagnose/misses.h"

#include <algorithm>
#include <utility>

#include "diagnose/thresholds.h"

namespace rose::diagnose {

void Misses::add(std::string moment, std::size_t tried, int level, double yield) {
  const auto [known, fresh] = at_.try_emplace(std::move(moment), all_.size());
  if (fresh) {
    all_.push_back({tried, level, yield, 1});
    return;
  }
  Missed& missed = all_[known->second];
  ++missed.runs;
  missed.yield = std::max(missed.yield, yield) * (1 - kReproduces);
}

Misses::Missed* Misses::best(const std::vector<Tried>& tried, const std::function<bool(std::size_t)>& running) {
  Missed* best = nullptr;
  for (Missed& missed : all_) {
    if (missed.runs >= kMostRunsOfMiss || tried[missed.tried].tally.reproduced > 0 || running(missed.tried)) continue;
    if (best == nullptr || missed.yield > best->yield) best = &missed;
  }
  return best;
}

void Misses::take(Missed& missed) {
  // Count the run before its outcome is known, because it counts even if it is inconclusive or its faults fire at
  // another moment.
  ++missed.runs;
  missed.yield *= 1 - kReproduces;
}

std::vector<Retry> Misses::retries(const std::vector<Tried>& tried,
                                   const std::function<bool(std::size_t)>& running) const {
  std::vector<Retry> all;
  for (const Missed& missed : all_)
    if (!running(missed.tried) && tried[missed.tried].tally.reproduced == 0)
      all.push_back({&tried[missed.tried].schedule, missed.yield, missed.runs});
  return all;
}

}  // namespace rose::diagnose
