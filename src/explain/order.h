// Steps whose order differs between failing and correct runs: another node or thread overtakes a thread that was held
// or is late, although each of them does what it always does. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/compare.h"
#include "explain/runs.h"
#include "schedule/schedule.h"

namespace rose::explain {

inline constexpr std::size_t kMostSwapped = 3;

// Call after align(). Empty if chance explains the order, if nodes were merged, or if a process restarted, because all
// its steps are then late. Earliest first, at most one per pair of nodes.
[[nodiscard]] std::vector<Swapped> swapped(const std::vector<Run>& runs, const Kinds& kinds,
                                           const schedule::Schedule& schedule);

}  // namespace rose::explain
