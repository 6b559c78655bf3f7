// A schedule that ends one node, which the deployment then restarts. A run of it shows what a restart alone causes.
// `rose profile --restarts` and `rose diagnose` use it.
#pragma once

#include <cstdint>
#include <string>

#include "schedule/schedule.h"

namespace rose::schedule {

// Ends the node when a third of the workload has passed, so that the node has data to lose, and time to recover.
[[nodiscard]] Schedule planned_restart(const std::string& name, const std::string& node, int signal,
                                       std::int64_t workload_ns);

}  // namespace rose::schedule
