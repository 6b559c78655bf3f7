// Predicts the runs that the search will request next, for runners that make runs ahead of time. Simulates copies of
// the parts of the search, assuming the most frequent outcome of each run; the search itself does not change. Private
// to diagnose.
#pragma once

#include <cstddef>
#include <vector>

#include "diagnose/lab.h"
#include "diagnose/move.h"
#include "diagnose/narrow.h"
#include "diagnose/simplify.h"

namespace rose::diagnose {

// A schedule that missed and may be run again. `runs`: the number of runs so far.
struct Retry {
  const schedule::Schedule* schedule = nullptr;
  double yield = 0;
  int runs = 1;
};
// A running trial, and the move that proposed it.
struct PendingTrial {
  const Move* move = nullptr;
  const Trial* what = nullptr;
};
// The next schedules, at most `room`, if all `pending` trials miss. `repeats`: the number of further runs of missed
// schedules that the search may still make.
[[nodiscard]] std::vector<schedule::Schedule> forecast_misses(const World& world, const Lab& lab, const Moves& moves,
                                                              const std::vector<PendingTrial>& pending,
                                                              const std::vector<Retry>& retries, int repeats,
                                                              std::size_t room);
// The trials, at most `most`, that the moves would make next. Reported by a search that has used up its runs.
[[nodiscard]] std::vector<NotTried> next_ideas(const World& world, const Lab& lab, const Moves& moves,
                                               std::size_t most);
// The next parts that the narrower may request, for both outcomes of each run. The parts that it would request soonest
// come first.
[[nodiscard]] std::vector<schedule::Schedule> forecast_narrowing(const Narrower& narrower, std::size_t room);
// Appends to `next` the schedules that minimisation may request. Those that follow the likelier outcome of each run
// come first. Assumes that each simpler schedule takes `gate` runs, and the final schedule `confirm` runs.
void forecast_simplifying(const Simplifier& simplifier, int gate, int confirm, std::size_t room,
                          std::vector<schedule::Schedule>& next);

// The result of a run in which all faults fired (of the alternatives in a group: the first) and the bug did not occur.
[[nodiscard]] schedule::RunResult plain_miss(const schedule::Schedule& schedule);

}  // namespace rose::diagnose
