// The clocks that rose reads. BPF programs use CLOCK_MONOTONIC (bpf_ktime_get_ns). Dumps carry wall-clock time, so that
// the dumps of several hosts can be merged.
#pragma once

#include <cstdint>

namespace rose {

// The monotonic clock of the machine, as bpf_ktime_get_ns reads it: in a time namespace CLOCK_MONOTONIC is another one.
[[nodiscard]] std::int64_t monotonic_ns();
// What the clocks of this process's time namespace show more than the machine's; 0 outside of one.
struct TimeOffsets {
  std::int64_t monotonic_ns = 0, boottime_ns = 0;
};
[[nodiscard]] const TimeOffsets& time_offsets();
[[nodiscard]] std::int64_t wall_ns();
// wall_ns - monotonic_ns at one instant. Adding it to a monotonic time stamp gives wall-clock time.
[[nodiscard]] std::int64_t wall_offset_ns();

}  // namespace rose
