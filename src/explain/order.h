// Steps whose order differs between failing and correct runs: a thread that was held or late is overtaken by another
// node or thread although each of them does what it always does. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/compare.h"
#include "explain/runs.h"
#include "schedule/schedule.h"

namespace rose::explain {

inline constexpr std::size_t kMostSwapped = 3;

// After align(). Empty if chance explains it, if nodes were merged, or if a process restarted and is late in everything
// it does. Earliest first, at most one per pair of nodes.
[[nodiscard]] std::vector<Swapped> swapped(const std::vector<Run>& runs, const Kinds& kinds,
                                           const schedule::Schedule& schedule);

}  // namespace rose::explain
