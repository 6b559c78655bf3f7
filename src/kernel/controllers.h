// The cgroup controllers that limit memory and processor time: v2's where the unified hierarchy has them, else v1's
// hierarchies. Where they are, what is written to which file, and how often a limit was felt. Whose folders they are
// and when, others say.
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
  std::filesystem::path base;  // v1: where folders may be made; v2: the hierarchy's mount
  std::filesystem::path own;   // v1: where rose itself is, and what it starts
};
// ErrorKind::environment, with how to get it.
[[nodiscard]] Result<ControllerPlace> find_controller(Controller controller);

// v2: a folder has the controller only if all above it pass it on. What is passed on stays so: others may have come to
// use it.
[[nodiscard]] Result<void> pass_on(Controller controller, const std::filesystem::path& mount,
                                   const std::filesystem::path& parent);
[[nodiscard]] Result<void> pass_on(std::string_view controller, const std::filesystem::path& mount,
                                   const std::filesystem::path& parent);

struct ControlWrite {
  std::string file;
  std::string value;
  bool optional = false;  // without that file the kernel has nothing of the kind (swap)
  friend bool operator==(const ControlWrite&, const ControlWrite&) = default;
};
// In this order. `amount`: bytes of memory, or millionths of one processor.
[[nodiscard]] std::vector<ControlWrite> limited(Controller controller, bool v2, std::uint64_t amount);
[[nodiscard]] std::vector<ControlWrite> unlimited(Controller controller, bool v2);
// 0, or the errno of the write that failed: EBUSY where v1 cannot take back what is used already.
[[nodiscard]] int write_all(const std::filesystem::path& folder, const std::vector<ControlWrite>& writes);
// Is what was written in force? The kernel rounds memory to pages.
[[nodiscard]] bool in_force(const std::filesystem::path& folder, Controller controller, bool v2, std::uint64_t amount);

// Bytes that the folder's processes hold; 0 when it cannot be read.
[[nodiscard]] std::uint64_t memory_used(const std::filesystem::path& folder, bool v2);
// How often the limit was felt: processes that the OOM killer ended, periods in which processes had to wait.
[[nodiscard]] std::uint64_t times_felt(const std::filesystem::path& folder, Controller controller, bool v2);
// How often it was at its limit; of memory also where the kernel could make room.
[[nodiscard]] std::uint64_t times_met(const std::filesystem::path& folder, Controller controller, bool v2);

// Moves what is in `folder` and below to `into`, then removes it. For v1: v2's folders are the deployment's.
[[nodiscard]] Result<void> dissolve(const std::filesystem::path& folder, const std::filesystem::path& into);

}  // namespace rose::kernel
