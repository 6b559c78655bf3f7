// Operations on cgroup v2 folders by path: create, list, freeze, kill, remove. Every process of a node is in such a
// folder from its first instruction on, so forks cannot escape.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy::cgroup {

// The folder in which rose may create cgroups: ROSE_CGROUP_PARENT if it is set, else the v2 mount, or rose's own cgroup
// if the root of the mount is not writable.
[[nodiscard]] Result<std::filesystem::path> base();

[[nodiscard]] Result<void> make(const std::filesystem::path& folder);

// The processes of the folder and of all folders below it.
[[nodiscard]] std::vector<pid_t> processes(const std::filesystem::path& folder);
[[nodiscard]] bool populated(const std::filesystem::path& folder);
[[nodiscard]] bool frozen(const std::filesystem::path& folder);

// Processes freeze themselves. freeze() therefore waits, for at most half a second, until the kernel reports that all
// are frozen.
[[nodiscard]] Result<void> order_freeze(const std::filesystem::path& folder, bool frozen);  // does not wait
[[nodiscard]] Result<void> freeze(const std::filesystem::path& folder, bool frozen);
// Kills all processes at once, even frozen ones; does not wait.
[[nodiscard]] Result<void> kill(const std::filesystem::path& folder);
// Sends `signal` to each process.
void signal(const std::filesystem::path& folder, int signal);
// Sends `signal` to one process of the folder. If the id now belongs to a process outside the folder, sends nothing.
// Returns false with errno on failure.
bool signal(const std::filesystem::path& folder, pid_t pid, int signal);
// Returns true if no process is left within `timeout_ns`.
[[nodiscard]] bool wait_empty(const std::filesystem::path& folder, std::int64_t timeout_ns);
// Kills all processes of the cgroup, and removes it with all cgroups below it.
[[nodiscard]] Result<void> destroy(const std::filesystem::path& folder);

}  // namespace rose::deploy::cgroup
