// Access to the cgroup controllers that limit memory and processor time: in v2 if the unified hierarchy has them,
// otherwise in v1. Knows the files, the values and the counters. Callers decide which folders are limited and when.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::kernel {

enum class Controller { memory, cpu };
[[nodiscard]] std::string_view controller_name(Controller controller);

struct ControllerPlace {
  bool v2 = false;
  std::filesystem::path base;  // v1: where folders can be created; v2: the mount point
  std::filesystem::path own;   // v1: the folder of rose and of the processes that it starts
};
// Returns ErrorKind::environment, with a hint on how to enable the controller.
[[nodiscard]] Result<ControllerPlace> find_controller(Controller controller);

// For v2: enables the controller in every folder from `mount` down to `parent`. A folder has a controller only if all
// its ancestors enable it for their children (cgroup.subtree_control). The controller is never disabled again, because
// other programs may have started to use it.
[[nodiscard]] Result<void> pass_on(Controller controller, const std::filesystem::path& mount,
                                   const std::filesystem::path& parent);
[[nodiscard]] Result<void> pass_on(std::string_view controller, const std::filesystem::path& mount,
                                   const std::filesystem::path& parent);

struct ControlWrite {
  std::string file;
  std::string value;
  bool optional = false;  // true for a file that does not exist in kernels without swap support
  friend bool operator==(const ControlWrite&, const ControlWrite&) = default;
};
// The writes that set or remove a limit, in this order. `amount`: bytes of memory, or millionths of one processor.
[[nodiscard]] std::vector<ControlWrite> limited(Controller controller, bool v2, std::uint64_t amount);
[[nodiscard]] std::vector<ControlWrite> unlimited(Controller controller, bool v2);
// Returns 0 or the errno of the failed write. In v1, a memory limit below the memory in use fails with EBUSY if the
// kernel cannot reclaim enough.
[[nodiscard]] int write_all(const std::filesystem::path& folder, const std::vector<ControlWrite>& writes);
// True if the written limit is in force. The kernel rounds memory limits to pages.
[[nodiscard]] bool in_force(const std::filesystem::path& folder, Controller controller, bool v2, std::uint64_t amount);

// Bytes that the folder's processes use; 0 if unknown.
[[nodiscard]] std::uint64_t memory_used(const std::filesystem::path& folder, bool v2);
// How often the limit took effect: processes killed by the OOM killer, or throttled periods.
[[nodiscard]] std::uint64_t times_felt(const std::filesystem::path& folder, Controller controller, bool v2);
// How often the usage reached the limit. For memory this includes cases in which the kernel could reclaim enough.
[[nodiscard]] std::uint64_t times_met(const std::filesystem::path& folder, Controller controller, bool v2);

// Moves the processes in and below `folder` to `into`, then removes `folder`. Only for v1, because folders of v2 belong
// to the deployment, which removes them.
[[nodiscard]] Result<void> dissolve(const std::filesystem::path& folder, const std::filesystem::path& into);

}  // namespace rose::kernel
