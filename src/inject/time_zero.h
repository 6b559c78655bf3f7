// Times in a run: the current time, and when its workload began (CLOCK_MONOTONIC). Times in results are relative to the
// beginning of the workload.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace rose::inject {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

// CLOCK_MONOTONIC as an unsigned number, as in the shared state.
inline std::uint64_t now_ns() { return static_cast<std::uint64_t>(monotonic_ns()); }

class TimeZero {
 public:
  void armed(std::uint64_t at) { armed_ns_ = at; }
  void began(std::uint64_t at) { workload_ns_ = at; }
  // 0: the workload has not begun.
  [[nodiscard]] std::uint64_t workload_ns() const { return workload_ns_; }

  // The time relative to the start of the workload; nothing if `at` is 0, because then the event did not happen. If the
  // workload never began, times are relative to the arming of the schedule.
  [[nodiscard]] std::optional<std::int64_t> since(std::uint64_t at) const {
    if (at == 0) return std::nullopt;
    const std::uint64_t began = workload_ns_;
    return static_cast<std::int64_t>(at) - static_cast<std::int64_t>(began != 0 ? began : armed_ns_.load());
  }

 private:
  std::atomic<std::uint64_t> workload_ns_{0}, armed_ns_{0};
};

}  // namespace rose::inject
