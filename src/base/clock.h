// The clocks that rose reads. BPF programs use CLOCK_MONOTONIC (bpf_ktime_get_ns). Dumps carry wall-clock time, so that
// the dumps of several hosts can be merged.
#pragma once

#include <cstdint>

namespace rose {

// The monotonic clock of the machine, as bpf_ktime_get_ns reads it. In a time namespace, CLOCK_MONOTONIC differs from
// it.
[[nodiscard]] std::int64_t monotonic_ns();
// The offsets of this process's time namespace from the machine's clocks; 0 outside a time namespace.
struct TimeOffsets {
  std::int64_t monotonic_ns = 0, boottime_ns = 0;
};
[[nodiscard]] const TimeOffsets& time_offsets();
[[nodiscard]] std::int64_t wall_ns();
// wall_ns - monotonic_ns at one instant. Adding it to a monotonic time stamp gives wall-clock time.
[[nodiscard]] std::int64_t wall_offset_ns();

}  // namespace rose
