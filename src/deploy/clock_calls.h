// Which calls about clocks a seccomp filter notifies.
#pragma once

namespace rose::deploy {

// Calls about clocks that are notified beside those that are named by number: all of a new image's first ones, those
// that read a clock, and those that wait for an absolute time of one. realtime: of CLOCK_REALTIME and its kin; all: of
// CLOCK_MONOTONIC and its kin too.
enum class ClockCalls { none, realtime, all };

}  // namespace rose::deploy
