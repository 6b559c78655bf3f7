// A command that runs alongside the nodes: a process tree in its own cgroup with a time limit.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "deploy/deployment.h"
#include "deploy/launch.h"

namespace rose::deploy {

struct CommandLimits {
  std::int64_t timeout_ns = 0;
  // Time for which the command continues after Ctrl-C. It is not 0 for teardown, which must undo what setup did. A
  // further Ctrl-C ends the command at once.
  std::int64_t after_cancel_ns = 0;
  std::uint64_t most_output = 0;   // number of bytes by which its log may grow; 0: unlimited
  bool sees_machine = false;       // it uses this machine's names and mounts, not the run's: for the engine's commands
  bool leave_descendants = false;  // after success, keep the processes that it started (setup may start the system)
};

// Starts the command in a new cgroup, `spec.cgroup`. The cgroup is removed with the command, unless its descendants are
// kept.
[[nodiscard]] Result<std::unique_ptr<RunningCommand>> run_beside(const LaunchSpec& spec, const CommandLimits& limits);

}  // namespace rose::deploy
