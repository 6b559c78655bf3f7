// cgroup v2 folders by path: made, listed, frozen, ended as one, removed. Every process of a node
// is in one from its first instruction on, so none escapes through forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy::cgroup {

// Where rose may make its folders: ROSE_CGROUP_PARENT, else the v2 mount, or rose's own cgroup when the mount's top is
// not writable.
[[nodiscard]] Result<std::filesystem::path> base();

[[nodiscard]] Result<void> make(const std::filesystem::path& folder);

// Of the folder and all below it.
[[nodiscard]] std::vector<pid_t> processes(const std::filesystem::path& folder);
[[nodiscard]] bool populated(const std::filesystem::path& folder);
[[nodiscard]] bool frozen(const std::filesystem::path& folder);

// Freezing is carried out by the processes themselves: waits until the kernel says all have, at most half a second.
[[nodiscard]] Result<void> order_freeze(const std::filesystem::path& folder, bool frozen);  // does not wait
[[nodiscard]] Result<void> freeze(const std::filesystem::path& folder, bool frozen);
// SIGKILL to all at once (frozen ones too); does not wait.
[[nodiscard]] Result<void> kill(const std::filesystem::path& folder);
// Sends `signal` to each process.
void signal(const std::filesystem::path& folder, int signal);
// True when no process is left within `timeout_ns`.
[[nodiscard]] bool wait_empty(const std::filesystem::path& folder, std::int64_t timeout_ns);
// Ends what is in it and removes it with all below it.
[[nodiscard]] Result<void> destroy(const std::filesystem::path& folder);

}  // namespace rose::deploy::cgroup
