// The clocks rose reads. Kernel programs stamp with CLOCK_MONOTONIC (bpf_ktime_get_ns); dumps
// carry wall-clock time, so that dumps of several hosts merge.
#pragma once

#include <cstdint>

namespace rose {

[[nodiscard]] std::int64_t monotonic_ns();
[[nodiscard]] std::int64_t wall_ns();
// wall_ns - monotonic_ns at one instant: add it to a monotonic stamp to get wall-clock time.
[[nodiscard]] std::int64_t wall_offset_ns();

}  // namespace rose
