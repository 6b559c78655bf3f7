// Which calls about clocks a seccomp filter reports to rose.
#pragma once

namespace rose::deploy {

// Selects the calls about clocks that the filter reports to rose, in addition to the calls selected by number. These
// are the first calls of a newly executed program, calls that read a clock, and calls that wait for an absolute time.
// realtime: only calls for CLOCK_REALTIME and its variants; all: also calls for CLOCK_MONOTONIC and its variants.
enum class ClockCalls { none, realtime, all };

}  // namespace rose::deploy
