// Determines what a node runs if its command is only a launcher (a script or shell): starts the deployment once,
// without faults and workload, and inspects its processes.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "replay/store.h"

namespace rose::replay {

// Returns the configuration with `binary` set to the actual programs (without those of the system) for each node whose
// program has no functions, and for a JVM with the application's own methods. Nodes that name a program or functions
// are unchanged. Nothing is started if no node needs it.
[[nodiscard]] Result<config::Config> follow_launchers(const config::Config& config, RunStore& store,
                                                      bool allow_attached);

}  // namespace rose::replay
