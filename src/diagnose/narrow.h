// Of many faults that showed the bug together, or a range of calls, the few that count: by halves, and where halves
// fail by ever smaller parts (A. Zeller, R. Hildebrandt, IEEE TSE 28, 2002). Knows nothing of runs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rose::diagnose {

class Narrower {
 public:
  struct Part {
    schedule::Schedule schedule;
    std::string what;
  };
  // `fired`: ids of those that fired in the run that showed the bug. `believed`: how much, by id; where several show
  // it, the likeliest is told.
  Narrower(schedule::Schedule schedule, const std::set<std::string>& fired,
           const std::map<std::string, double>& believed = {});

  // The next part to run; nothing when it is narrow enough.
  [[nodiscard]] std::optional<Part> next();
  // Did it show the bug, and with which faults?
  void learn(bool shows, const std::set<std::string>& fired);

 private:
  using Units = std::vector<std::string>;  // faults, or groups of alternatives

  [[nodiscard]] schedule::Schedule with_only(const Units& units) const;
  void plan_parts();

  schedule::Schedule whole_;
  Units sure_;  // showed the bug together
  // First by halves alone: where the first half does not show it, the second is believed to, and seen at the end.
  Units believed_;
  bool halving_ = true;
  // Then as delta debugging has it.
  std::vector<Units> parts_;
  std::size_t pieces_ = 2;
  Units asked_;
  // The range of calls of the one that is left.
  bool ranging_ = false;
  bool ended_ = false;
  int first_ = 0, last_ = 0;  // believed
  int sure_first_ = 0, sure_last_ = 0;
  int asked_last_ = 0;
};

// How many runs it takes by halves, when all goes well.
[[nodiscard]] double narrowing_runs(const schedule::Schedule& schedule);

}  // namespace rose::diagnose
