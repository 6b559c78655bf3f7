// A planned restart, made to learn what follows from one: `rose profile --restarts` and diagnosis use it.
#pragma once

#include <cstdint>
#include <string>

#include "schedule/schedule.h"

namespace rose::schedule {

// Ends the node a third into the workload, so that it has something to lose, and time to recover.
[[nodiscard]] Schedule planned_restart(const std::string& name, const std::string& node, int signal,
                                       std::int64_t workload_ns);

}  // namespace rose::schedule
