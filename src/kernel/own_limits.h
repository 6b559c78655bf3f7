// Copies the limits of one cgroup v2 folder to another, so that the limits that a container engine set stay in force
// when rose moves a container's processes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::kernel {

struct OwnLimit {
  std::string file;                // "memory.max"; the part before the first dot is the controller
  std::vector<std::string> lines;  // each line is a separate write
  friend bool operator==(const OwnLimit&, const OwnLimit&) = default;
};
// The limits set on this folder (not on its ancestors) that differ from those of a new folder, sorted by file.
[[nodiscard]] std::vector<OwnLimit> own_limits(const std::filesystem::path& folder);

// Applies these limits to `folder`, which is created if necessary. Enables their controllers in each folder from
// `mount` down, which fails if a folder on the path contains processes itself. Returns ErrorKind::environment with the
// name of the limit.
[[nodiscard]] Result<void> take_over(const std::vector<OwnLimit>& limits, const std::filesystem::path& mount,
                                     const std::filesystem::path& folder);

}  // namespace rose::kernel
