// What nodes run whose command only launches it: a script, a shell. The deployment is started once, without faults and
// without its workload, and its processes are looked at.
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "replay/store.h"

namespace rose::replay {

// The configuration in which each node without functions that its program could show names as `binary` what it really
// runs: programs that are no part of the system; of a JVM the methods that are the application's own. Nodes that name a
// program or functions themselves, and those of which nothing better is known, stay as they are. Nothing is started
// where no node is in question.
[[nodiscard]] Result<config::Config> follow_launchers(const config::Config& config, RunStore& store,
                                                      bool allow_attached);

}  // namespace rose::replay
