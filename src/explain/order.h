// Finds steps whose order differs between failing and correct runs: a thread that was held up or is late is overtaken
// by another thread or node, although each of them does what it always does. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/compare.h"
#include "explain/runs.h"
#include "schedule/schedule.h"

namespace rose::explain {

inline constexpr std::size_t kMostSwapped = 3;

// Call after align(). Returns nothing if chance may explain the order, or if a fault is a crash, because all steps of a
// restarted process are late. The earliest comes first; there is at most one for each pair of nodes. Do not call this
// for runs whose nodes were merged.
[[nodiscard]] std::vector<Swapped> swapped(const std::vector<Run>& runs, const Kinds& kinds,
                                           const schedule::Schedule& schedule);

}  // namespace rose::explain
