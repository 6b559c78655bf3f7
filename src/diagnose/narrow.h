// Reduces many faults that reproduced the bug together, or a range of calls, to the few that matter: by bisection, and
// where halves fail, by ever smaller parts (A. Zeller, R. Hildebrandt, IEEE TSE 28, 2002). Makes no runs itself.
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
  // `fired`: ids of the faults that fired in the run that reproduced the bug. `believed`: their weights, by id; if
  // several faults reproduce it, the most likely one is reported.
  Narrower(schedule::Schedule schedule, const std::set<std::string>& fired,
           const std::map<std::string, double>& weight_of_fault = {});

  // The next part to run; nothing when it is reduced as far as possible.
  [[nodiscard]] std::optional<Part> next();
  // Takes the outcome of a run: whether it reproduced the bug, and which faults fired.
  void learn(bool reproduced, const std::set<std::string>& fired);

 private:
  using Units = std::vector<std::string>;  // faults, or groups of alternatives

  [[nodiscard]] schedule::Schedule with_only(const Units& units) const;
  void plan_parts();

  schedule::Schedule whole_;
  Units proven_;  // reproduced the bug together
  // First only by halves: if the first half does not reproduce it, the second is assumed to; that is checked at the
  // end.
  Units assumed_;
  bool halving_ = true;
  // Then by delta debugging.
  std::vector<Units> parts_;
  std::size_t pieces_ = 2;
  Units proposed_;
  // Finally the range of calls of the one fault that is left.
  bool ranging_ = false;
  bool ended_ = false;
  int first_ = 0, last_ = 0;  // assumed range
  int proven_first_ = 0, proven_last_ = 0;
  int proposed_last_ = 0;
};

// The number of runs that bisection takes if no step fails.
[[nodiscard]] double narrowing_runs(const schedule::Schedule& schedule);

}  // namespace rose::diagnose
