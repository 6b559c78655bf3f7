// Which events of a run's trace are rose's own doing: the tracer sees an injected result like any other.
#pragma once

#include <cstdint>
#include <vector>

#include "inject/injector.h"
#include "schedule/schedule.h"
#include "trace/event.h"

namespace rose::replay {

// Flags them kInjected. `offset_ns`: wall clock minus monotonic clock, as in the trace.
//
// A thread makes one call at a time, so the first event of its syscall from the moment on at which the injector decided
// about the call is that call's. A process counts when it was signalled; of a node that was ended as a whole, also what
// it bore meanwhile.
void mark_injected(trace::Trace& trace, const schedule::Schedule& schedule, const inject::Deeds& deeds,
                   std::int64_t offset_ns);

}  // namespace rose::replay
