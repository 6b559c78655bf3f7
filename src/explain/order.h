// What comes in another order in failing runs than in correct ones: a thread that stood still, or was late, is
// overtaken by another node or thread although each of them does what it always does. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/compare.h"
#include "explain/runs.h"
#include "schedule/schedule.h"

namespace rose::explain {

inline constexpr std::size_t kMostSwapped = 3;

// After align(). Nothing where chance explains it, where nodes were merged, or where a process began anew and is late
// with all it does. Earliest first, at most one for two nodes.
[[nodiscard]] std::vector<Swapped> swapped(const std::vector<Run>& runs, const Kinds& kinds,
                                           const schedule::Schedule& schedule);

}  // namespace rose::explain
