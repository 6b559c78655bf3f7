// Marks those events in a run's trace that rose caused. This is necessary because the tracer records injected results
// like any other results.
#pragma once

#include <cstdint>
#include <vector>

#include "inject/injector.h"
#include "schedule/schedule.h"
#include "trace/event.h"

namespace rose::replay {

// Sets the flag kInjected of these events. `offset_ns` is the wall clock minus the monotonic clock, as in the trace.
//
// A thread makes one call at a time, so the injected call is the first event of that system call after the injector's
// decision. The end of a process is marked if the process was signalled. If a whole node was killed, this includes
// processes that it created meanwhile.
void mark_injected(trace::Trace& trace, const schedule::Schedule& schedule, const inject::InjectionRecord& record,
                   std::int64_t offset_ns);

}  // namespace rose::replay
