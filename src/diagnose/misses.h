// Schedules that missed. A miss may be chance, so a schedule may be run again, alternating with new ones; each further
// miss lowers its expected yield. Private to diagnose.
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

  // Runs whose faults fired at the same moment count as runs of one schedule, whatever conditions it had. `moment`:
  // where its faults fired.
  void add(std::string moment, std::size_t tried, int level, double yield);
  // The one with the highest expected yield; null if there is none. Skips those in `running`, and those that have
  // reproduced the bug since.
  [[nodiscard]] Missed* best(const std::vector<Tried>& tried, const std::function<bool(std::size_t)>& running);
  // Marks it as being run again.
  static void take(Missed& missed);
  // All that are not running, for a forecast.
  [[nodiscard]] std::vector<Retry> retries(const std::vector<Tried>& tried,
                                           const std::function<bool(std::size_t)>& running) const;

 private:
  std::vector<Missed> all_;
  std::map<std::string, std::size_t> at_;  // by moment
};

}  // namespace rose::diagnose
