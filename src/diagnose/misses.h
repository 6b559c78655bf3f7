// Schedules that did not reproduce the bug. A miss may be due to chance, so such a schedule competes with new trials
// for further runs; each further miss lowers its expected yield. Private to diagnose.
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

  // Adds a miss. Runs whose faults fired at the same moment (moment_of()) have the same effect, so they count as runs
  // of one schedule even if their conditions differ.
  void add(std::string moment, std::size_t tried, int level, double yield);
  // The schedule with the highest expected yield; nullptr if there is none. Skips schedules that are running, and
  // schedules that have reproduced the bug since.
  [[nodiscard]] Missed* best(const std::vector<Tried>& tried, const std::function<bool(std::size_t)>& running);
  // Counts another run of the schedule.
  static void take(Missed& missed);
  // All schedules that may be run again, for a forecast.
  [[nodiscard]] std::vector<Retry> retries(const std::vector<Tried>& tried,
                                           const std::function<bool(std::size_t)>& running) const;

 private:
  std::vector<Missed> all_;
  std::map<std::string, std::size_t> at_;  // by moment: index into all_
};

}  // namespace rose::diagnose
