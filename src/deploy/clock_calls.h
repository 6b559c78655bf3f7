// Selects the calls about clocks that a seccomp filter reports to rose.
#pragma once

namespace rose::deploy {

// The filter reports these calls in addition to the calls that are selected by number. They are calls that read a
// clock, calls that wait for an absolute time, and the first call of the C library in a newly executed program
// (kernel::kFirstCall), which comes before the program reads a clock. realtime: only clocks such as CLOCK_REALTIME;
// all: also clocks such as CLOCK_MONOTONIC.
enum class ClockCalls { none, realtime, all };

}  // namespace rose::deploy
