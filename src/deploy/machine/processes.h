// Finds the main process of an `attach` node.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace rose::deploy {

// Name of the process that keeps the seccomp filter of a command started by `rose exec` (inject/exec_socket.h).
inline constexpr const char* kExecKeeper = "rose-exec";

struct Attached {
  pid_t pid = 0;                 // its main process
  std::filesystem::path cgroup;  // v2 folder; "" if the process is in the root folder
  bool named = false;  // the configuration names the cgroup, unit or container: everything in it belongs to the node
};
// Finds the system that `setup` started. Errors describe what was searched for.
[[nodiscard]] Result<Attached> find_attached(const config::Attach& attach, const std::filesystem::path& run_dir);

// Pausing or ending a node affects its whole cgroup. Returns an error if that would include rose itself or, unless the
// cgroup was named, a process that does not descend from the node's main process.
[[nodiscard]] Result<void> check_alone(const Attached& attached);
// Returns an error if rose itself is in the cgroup. check_alone() checks that, too, but the check must be repeated,
// because rose may be moved to the cgroup later.
[[nodiscard]] Result<void> check_without_rose(const std::filesystem::path& cgroup);
[[nodiscard]] bool is_within(const std::filesystem::path& folder, const std::filesystem::path& outer);

// For messages: "123 (sleep)".
[[nodiscard]] std::string described(pid_t pid);

// The process from which the other processes of a daemon descend: among those in `pids` whose parent is not in `pids`,
// the oldest.
[[nodiscard]] pid_t leading_process(const std::vector<pid_t>& pids);

}  // namespace rose::deploy
