// Determines what a node runs if its command is only a launcher (a script or shell): starts the deployment once,
// without faults and workload, and inspects its processes.
#pragma once

#include <optional>

#include "base/file.h"
#include "base/result.h"
#include "config/config.h"
#include "replay/store.h"

namespace rose::replay {

struct Launched {
  config::Config config;
  std::optional<TemporaryFolder> programs;  // files to which `config` refers
};
// Returns the configuration with `binary` set to the actual programs (without those of the system) for each node whose
// program has no functions, and for a JVM with the application's own methods. Nodes that name a program or functions
// are unchanged. Nothing is started if no node needs it. Programs in the run's folder are copied, because the next run
// has files of its own: see config::Node::made_by_runs.
[[nodiscard]] Result<Launched> follow_launchers(const config::Config& config, RunStore& store, bool allow_attached);

}  // namespace rose::replay
