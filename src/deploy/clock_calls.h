// The calls about clocks for which a seccomp filter notifies rose.
#pragma once

namespace rose::deploy {

// Notified in addition to the calls selected by number: the first calls of a newly executed program, those that read a
// clock, and those that wait for an absolute time. realtime: for CLOCK_REALTIME and its variants; all: also
// CLOCK_MONOTONIC and its variants.
enum class ClockCalls { none, realtime, all };

}  // namespace rose::deploy
