// Failures that are how a call is used, not that something failed: expected noise, counted instead of recorded. The
// built-in list, and rules that change it.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/syscalls.h"

namespace rose::kernel {

struct NoiseTable {
  static constexpr int kErrnos = 256;  // larger ones are no program's everyday
  std::array<std::bitset<kErrnos>, kMostSyscalls> expected{};
  // EAGAIN is expected where the descriptor (or MSG_DONTWAIT) says not to wait; elsewhere a time limit
  // (SO_RCVTIMEO) ran out, which is worth recording.
  std::bitset<kMostSyscalls> again_when_nonblocking;
};

[[nodiscard]] NoiseTable builtin_noise();

// "stat:ENOENT" adds, "-read:EAGAIN" takes out, "*:ENOENT" means every call (globs of calls), "none" clears the list.
// ErrorKind::usage with suggestions when it names what does not exist.
[[nodiscard]] Result<void> change_noise(NoiseTable& table, std::string_view rule);
// The built-in list, changed by each in turn.
[[nodiscard]] Result<NoiseTable> noise_table(const std::vector<std::string>& rules);

// "EAGAIN  futex futex_wait ...", a line an error.
[[nodiscard]] std::vector<std::string> describe_noise(const NoiseTable& table);

}  // namespace rose::kernel
