// cgroup v2: its mount point, the cgroup of a process, and the name and id that the kernel gives to a cgroup.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace rose::kernel {

// "/sys/fs/cgroup", or ".../unified" in the hybrid layout.
[[nodiscard]] Result<std::filesystem::path> cgroup2_mount();
// True if cgroup v1 hierarchies are also mounted.
[[nodiscard]] bool cgroup1_mounted();

struct Cgroup {
  std::filesystem::path path;
  std::uint64_t id = 0;     // as returned by bpf_get_current_cgroup_id; 0: it does not exist yet
  std::uint32_t level = 0;  // depth; 0: the root
  std::string name;         // path from the root of the hierarchy: "/system.slice/x.service"
};

// Finds a cgroup v2 folder, which may not exist yet. Returns ErrorKind::input if the path cannot be a cgroup folder, or
// ErrorKind::environment if only a part of the hierarchy is visible.
[[nodiscard]] Result<Cgroup> find_cgroup(const std::filesystem::path& folder);
// The current id of the folder's cgroup, or 0 if the folder does not exist.
[[nodiscard]] std::uint64_t cgroup_id(const std::filesystem::path& folder);

// The folder of the cgroup that the process is in; "" if the process has ended or its cgroup is not visible.
[[nodiscard]] std::filesystem::path cgroup_folder_of(pid_t pid);
[[nodiscard]] Result<Cgroup> cgroup_of(pid_t pid);

}  // namespace rose::kernel
