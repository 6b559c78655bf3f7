// Resolves the targets of `rose trace` to nodes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "observe/tracer.h"

namespace rose::cli {

struct TargetOptions {
  std::vector<int> pids;
  std::vector<std::string> cgroups;
  std::vector<std::string> units;
  std::vector<std::string> containers;
  std::vector<std::string> nodes;   // NAME=pid:PID, NAME=cgroup:PATH, NAME=unit:UNIT, NAME=container:ID
  std::vector<std::string> labels;  // KEY=VALUE, for all nodes

  [[nodiscard]] bool empty() const {
    return pids.empty() && cgroups.empty() && units.empty() && containers.empty() && nodes.empty();
  }
};

// --pid and similar options describe one node, which is named after the host; --node describes nodes with other names.
// If a target does not exist, the error names the option.
[[nodiscard]] Result<std::vector<observe::Target>> resolve_targets(const TargetOptions& options);

// KEY:VALUE for each --label, for the dump's header.
[[nodiscard]] Result<std::vector<std::string>> resolve_labels(const TargetOptions& options);

// The name of this host. Targets that --node does not assign form a node with this name.
[[nodiscard]] std::string host_name();

}  // namespace rose::cli
