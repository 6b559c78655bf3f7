// Limits that a cgroup v2 folder has, taken over into another one: what an engine has limited stays limited where rose
// puts it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::kernel {

struct OwnLimit {
  std::string file;                // "memory.max"; what stands before the first dot is the controller
  std::vector<std::string> lines;  // each is one write
  friend bool operator==(const OwnLimit&, const OwnLimit&) = default;
};
// Those of the folder itself, not of folders above it, that are not what a new folder has; by name.
[[nodiscard]] std::vector<OwnLimit> own_limits(const std::filesystem::path& folder);

// Gives `folder` these limits; it is made when it is not there. Their controllers are passed on to it from `mount`,
// which no folder on the way allows that holds processes itself. ErrorKind::environment names the limit that cannot be
// had.
[[nodiscard]] Result<void> take_over(const std::vector<OwnLimit>& limits, const std::filesystem::path& mount,
                                     const std::filesystem::path& folder);

}  // namespace rose::kernel
