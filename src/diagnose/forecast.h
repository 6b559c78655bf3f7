// What the search will probably ask for next: copies of its parts are run ahead, with the most frequent outcome for
// each run. Changes nothing in the search itself. Private to diagnose.
#pragma once

#include <cstddef>
#include <vector>

#include "diagnose/lab.h"
#include "diagnose/move.h"
#include "diagnose/narrow.h"
#include "diagnose/simplify.h"

namespace rose::diagnose {

// A schedule that missed, and may be run again.
struct Retry {
  const schedule::Schedule* schedule = nullptr;
  double yield = 0;
  int runs = 1;
};
// A schedule of a move that is being run.
struct UnderWay {
  const Move* move = nullptr;
  const Try* what = nullptr;
};
// After misses: the next trials of the moves. `again`: so many may be run once more.
[[nodiscard]] std::vector<schedule::Schedule> forecast_misses(const World& world, const Lab& lab, const Moves& moves,
                                                              const std::vector<UnderWay>& under_way,
                                                              const std::vector<Retry>& retries, int again,
                                                              std::size_t room);
// For a search that has no runs left: what the moves would try next and have not tried yet.
[[nodiscard]] std::vector<NotTried> next_ideas(const World& world, const Lab& lab, const Moves& moves,
                                               std::size_t most);
// After either answer, and those after that.
[[nodiscard]] std::vector<schedule::Schedule> forecast_narrowing(const Narrower& narrower, std::size_t room);
// The same of simplification, where each idea takes `gate` runs; in the end come `confirm` runs of what is left.
void forecast_simplifying(const Simplifier& simplifier, int gate, int confirm, std::size_t room,
                          std::vector<schedule::Schedule>& next);

// A run that showed nothing, though all came that was planned.
[[nodiscard]] schedule::RunResult plain_miss(const schedule::Schedule& schedule);

}  // namespace rose::diagnose
