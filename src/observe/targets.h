// Where the targets are: v2 cgroups with their ids and depths, process trees.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::observe {

struct Cgroup {
  std::filesystem::path path;
  std::uint64_t id = 0;     // 0: it is not there yet
  std::uint32_t level = 0;  // 0: the root
  std::string name;         // from the hierarchy's top, as the kernel says it: "/system.slice/x.service"
};

// A cgroup and the node (index into the targets) that it belongs to, or whose processes live in it.
struct NodeCgroup {
  Cgroup cgroup;
  std::uint32_t node = 0;
};

// A v2 cgroup folder, which may come later. ErrorKind::input when it is none or cannot become one.
[[nodiscard]] Result<Cgroup> find_cgroup(const std::filesystem::path& folder);
// Its id now; 0 when it is not there.
[[nodiscard]] std::uint64_t cgroup_id(const std::filesystem::path& folder);
// The v2 cgroup a process lives in.
[[nodiscard]] Result<Cgroup> cgroup_of(pid_t pid);

// All descendants of `roots` alive now, without the roots themselves.
[[nodiscard]] std::vector<pid_t> descendants(const std::vector<pid_t>& roots);
[[nodiscard]] bool alive(pid_t pid);
// As /proc says it: 'S', 'T', ...; 0 when there is no such process.
[[nodiscard]] char process_state(pid_t pid);

}  // namespace rose::observe
