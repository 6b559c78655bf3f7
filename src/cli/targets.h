// What `rose trace` is asked to attach to, as nodes.
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
  std::vector<std::string> labels;  // KEY=VALUE, of all of them

  [[nodiscard]] bool empty() const {
    return pids.empty() && cgroups.empty() && units.empty() && containers.empty() && nodes.empty();
  }
};

// --pid and its like are one node named after the host; --node gives names. Whatever does not exist
// is an error that names the option.
[[nodiscard]] Result<std::vector<observe::Target>> resolve_targets(const TargetOptions& options);

// KEY:VALUE of each --label, for the dump's meta.
[[nodiscard]] Result<std::vector<std::string>> resolve_labels(const TargetOptions& options);

// This host's name: the node of everything that has no other name.
[[nodiscard]] std::string host_name();

}  // namespace rose::cli
