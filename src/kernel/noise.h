// Failures that are part of the normal use of a call (such as EAGAIN). They are counted instead of recorded. Contains
// the built-in list and the rules that change it.
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
  static constexpr int kErrnos = 256;  // larger errnos do not occur in normal operation
  std::array<std::bitset<kErrnos>, kMostSyscalls> expected{};
  // Calls for which EAGAIN is expected only if the descriptor is non-blocking or MSG_DONTWAIT was given. Otherwise
  // EAGAIN means that a timeout (SO_RCVTIMEO) expired, which is worth recording.
  std::bitset<kMostSyscalls> again_when_nonblocking;
};

[[nodiscard]] NoiseTable builtin_noise();

// Applies a rule: "stat:ENOENT" adds an entry, "-read:EAGAIN" removes one, "*:ENOENT" adds the error for all calls (the
// name of the call may be a glob), and "none" clears the list. Returns ErrorKind::usage with suggestions if the call or
// the error does not exist.
[[nodiscard]] Result<void> change_noise(NoiseTable& table, std::string_view rule);
// The built-in list after applying the rules in order.
[[nodiscard]] Result<NoiseTable> noise_table(const std::vector<std::string>& rules);

// The table as text, one line per error: "EAGAIN  futex futex_wait ...".
[[nodiscard]] std::vector<std::string> describe_noise(const NoiseTable& table);

}  // namespace rose::kernel
