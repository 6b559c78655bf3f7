// The clocks that rose reads. BPF programs use CLOCK_MONOTONIC (bpf_ktime_get_ns). Dumps carry wall-clock time, so that
// the dumps of several hosts can be merged.
#pragma once

#include <cstdint>

namespace rose {

[[nodiscard]] std::int64_t monotonic_ns();
[[nodiscard]] std::int64_t wall_ns();
// wall_ns - monotonic_ns at one instant. Adding it to a monotonic time stamp gives wall-clock time.
[[nodiscard]] std::int64_t wall_offset_ns();

}  // namespace rose
