// Where an `attach` node's main process is.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace rose::deploy {

inline constexpr const char* kExecKeeper =
    "rose-exec";  // the process that keeps the filter of a command that `rose exec` entered

struct Attached {
  pid_t pid = 0;                 // its main process
  std::filesystem::path cgroup;  // v2 folder; "" when it shares the top one
  bool named = false;            // the configuration names the cgroup, unit or container: all that is in it is the node
};
// Where the system that `setup` started is now. Errors say what was looked for.
[[nodiscard]] Result<Attached> find_attached(const config::Attach& attach, const std::filesystem::path& run_dir);

// Pausing or ending a node stops its whole cgroup. An error when that would stop rose itself, or, unless the cgroup was
// named, a process that does not descend from the node's.
[[nodiscard]] Result<void> check_alone(const Attached& attached);
// The first half of it, which may come true later too.
[[nodiscard]] Result<void> check_without_rose(const std::filesystem::path& cgroup);
[[nodiscard]] bool is_within(const std::filesystem::path& folder, const std::filesystem::path& outer);

// "123 (sleep)"
[[nodiscard]] std::string described(pid_t pid);

// Of the processes in a folder the one that a daemon's others descend from: its parent is outside, and it is the
// oldest.
[[nodiscard]] pid_t leading_process(const std::vector<pid_t>& pids);

}  // namespace rose::deploy
