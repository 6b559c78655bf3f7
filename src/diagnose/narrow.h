// Reduces faults that reproduced the bug together, or a range of calls, to the few that matter: by bisection, and if no
// half reproduces the bug, by delta debugging with ever smaller parts (A. Zeller, R. Hildebrandt, IEEE TSE 28, 2002).
// Makes no runs itself.
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
  // `fired`: ids of the faults that fired in the run that reproduced the bug. `weight_of_fault`: weights by id; faults
  // with high weights are tried first, so that the most likely fault is found if several reproduce the bug.
  Narrower(schedule::Schedule schedule, const std::set<std::string>& fired,
           const std::map<std::string, double>& weight_of_fault = {});

  // The next part to run; nothing if no further reduction is possible.
  [[nodiscard]] std::optional<Part> next();
  // Learns the outcome of a run of the part that next() returned: whether it reproduced the bug, and the ids of the
  // faults that fired (empty: all).
  void learn(bool reproduced, const std::set<std::string>& fired);

 private:
  using Units = std::vector<std::string>;  // ids of faults, or names of groups of alternatives

  [[nodiscard]] schedule::Schedule with_only(const Units& units) const;
  void plan_parts();

  schedule::Schedule whole_;
  Units proven_;  // they reproduced the bug together
  // First phase: bisection. If the first half does not reproduce the bug, the second half is assumed to reproduce it,
  // without a run; the last remaining unit is checked by a run.
  Units assumed_;
  bool halving_ = true;
  // Second phase: delta debugging.
  std::vector<Units> parts_;
  std::size_t pieces_ = 2;
  Units proposed_;
  // Third phase: bisection of the range of calls of the only remaining fault.
  bool ranging_ = false;
  bool ended_ = false;
  int first_ = 0, last_ = 0;  // the assumed range
  int proven_first_ = 0, proven_last_ = 0;
  int proposed_last_ = 0;
};

// The number of runs that bisection takes if in each step one of the halves alone reproduces the bug.
[[nodiscard]] double narrowing_runs(const schedule::Schedule& schedule);

}  // namespace rose::diagnose
