// Determines what a node runs if its command is only a launcher (a script or a shell). For this, it starts the
// deployment once, without faults and workload, and inspects the processes.
#pragma once

#include <optional>

#include "base/file.h"
#include "base/result.h"
#include "config/config.h"
#include "replay/store.h"

namespace rose::replay {

struct Launched {
  config::Config config;
  std::optional<TemporaryFolder> programs;  // contains files to which `config` refers
};
// Returns the configuration, changed for each node whose program has no functions: `binary` is set to the programs that
// the node actually runs (without those of the system), and for a JVM, the methods are set to those of the application.
// Nodes that name a program or functions are not changed. If no node needs this, nothing is started. Programs in the
// run's folder are copied, because the next run has its own files; see config::Node::made_by_runs.
[[nodiscard]] Result<Launched> follow_launchers(const config::Config& config, RunStore& store, bool allow_attached);

}  // namespace rose::replay
