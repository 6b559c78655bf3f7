// cgroup v2: where it is mounted, where a process lives in it, and how the kernel calls a folder of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace rose::kernel {

// "/sys/fs/cgroup", or ".../unified" in the hybrid layout.
[[nodiscard]] Result<std::filesystem::path> cgroup2_mount();
// v1 hierarchies are mounted too.
[[nodiscard]] bool cgroup1_mounted();

struct Cgroup {
  std::filesystem::path path;
  std::uint64_t id = 0;     // as bpf_get_current_cgroup_id says it; 0: it is not there yet
  std::uint32_t level = 0;  // 0: the root
  std::string name;         // from the hierarchy's top, as the kernel says it: "/system.slice/x.service"
};

// A v2 cgroup folder, which may come later. ErrorKind::input when it is none or cannot become one,
// ErrorKind::environment when only a part of the hierarchy can be seen from here.
[[nodiscard]] Result<Cgroup> find_cgroup(const std::filesystem::path& folder);
// Its id now; 0 when it is not there.
[[nodiscard]] std::uint64_t cgroup_id(const std::filesystem::path& folder);

// The folder that a process lives in; "" when it is gone or its cgroup cannot be seen from here.
[[nodiscard]] std::filesystem::path cgroup_folder_of(pid_t pid);
[[nodiscard]] Result<Cgroup> cgroup_of(pid_t pid);

}  // namespace rose::kernel
