// A command beside the nodes: one process tree in a cgroup of its own, with a time limit.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "deploy/deployment.h"
#include "deploy/launch.h"

namespace rose::deploy {

struct CommandLimits {
  std::int64_t timeout_ns = 0;
  std::int64_t after_cancel_ns = 0;  // what it still gets after Ctrl-C (teardown runs then too), until a further one
  std::uint64_t most_output = 0;     // bytes that its log may grow by; 0: any number
  bool leave_descendants = false;    // after success, what it started lives on (setup may start the system)
};

// `spec.cgroup` is made here and removed with the command, unless descendants are left.
[[nodiscard]] Result<std::unique_ptr<RunningCommand>> run_beside(const LaunchSpec& spec, const CommandLimits& limits);

}  // namespace rose::deploy
