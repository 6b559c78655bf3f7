// Dumps of several nodes and hosts as one.
#pragma once

#include <vector>

#include "trace/event.h"

namespace rose::trace {

// One trace with the events of all, by timestamp; lost and suppressed add up.
[[nodiscard]] Trace merge(const std::vector<Trace>& traces);

}  // namespace rose::trace
