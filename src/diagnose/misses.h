// Schedules that missed. A miss is no proof, for chance may have missed the bug: they may be run again, by turns with
// what is new; how much that promises falls with each. Private to diagnose.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/forecast.h"

namespace rose::diagnose {

class Misses {
 public:
  struct Missed {
    std::size_t tried = 0;  // index into Diagnosis::tried
    int level = 1;
    double yield = 0;
    int runs = 1;
  };

  // Runs at one moment are runs of one schedule, whatever that waited for. `moment`: where its faults came.
  void add(std::string moment, std::size_t tried, int level, double yield);
  // The one with the highest expected yield; null if there is none. It is not one of `running`, and has not reproduced
  // the bug meanwhile.
  [[nodiscard]] Missed* best(const std::vector<Tried>& tried, const std::function<bool(std::size_t)>& running);
  // It is run again.
  static void take(Missed& missed);
  // All that are not running, for a forecast.
  [[nodiscard]] std::vector<Retry> retries(const std::vector<Tried>& tried,
                                           const std::function<bool(std::size_t)>& running) const;

 private:
  std::vector<Missed> all_;
  std::map<std::string, std::size_t> at_;  // by moment
};

}  // namespace rose::diagnose
