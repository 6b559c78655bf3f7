// Predicts what the search will request next: copies of its parts are simulated, with the most frequent outcome for
// each run. Changes nothing in the search itself. Private to diagnose.
#pragma once

#include <cstddef>
#include <vector>

#include "diagnose/lab.h"
#include "diagnose/move.h"
#include "diagnose/narrow.h"
#include "diagnose/simplify.h"

namespace rose::diagnose {

// A schedule that missed, and may be run repeats.
struct Retry {
  const schedule::Schedule* schedule = nullptr;
  double yield = 0;
  int runs = 1;
};
// A schedule of a move that is being run.
struct PendingTrial {
  const Move* move = nullptr;
  const Trial* what = nullptr;
};
// After misses: the next trials of the moves. `repeats`: how many schedules may be repeated.
[[nodiscard]] std::vector<schedule::Schedule> forecast_misses(const World& world, const Lab& lab, const Moves& moves,
                                                              const std::vector<PendingTrial>& pending,
                                                              const std::vector<Retry>& retries, int repeats,
                                                              std::size_t room);
// For a search that has no runs left: what the moves would try next and have not tried yet.
[[nodiscard]] std::vector<NotTried> next_ideas(const World& world, const Lab& lab, const Moves& moves,
                                               std::size_t most);
// For both possible answers, and for the answers after those.
[[nodiscard]] std::vector<schedule::Schedule> forecast_narrowing(const Narrower& narrower, std::size_t room);
// The same for minimisation, where each idea takes `gate` runs, followed by `confirm` runs of the result.
void forecast_simplifying(const Simplifier& simplifier, int gate, int confirm, std::size_t room,
                          std::vector<schedule::Schedule>& next);

// A run that did not reproduce the bug, although everything that was planned happened.
[[nodiscard]] schedule::RunResult plain_miss(const schedule::Schedule& schedule);

}  // namespace rose::diagnose
