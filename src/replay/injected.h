// Marks the events of a run's trace that rose caused. The tracer records injected results like any others.
#pragma once

#include <cstdint>
#include <vector>

#include "inject/injector.h"
#include "schedule/schedule.h"
#include "trace/event.h"

namespace rose::replay {

// Sets the flag kInjected of these events. `offset_ns`: wall clock minus monotonic clock, as in the trace.
//
// A thread makes one call at a time, so the first event of that system call after the injector's decision is the
// injected one. Ends of processes count if they were signalled; if a whole node was killed, also those of processes
// that it created meanwhile.
void mark_injected(trace::Trace& trace, const schedule::Schedule& schedule, const inject::InjectionRecord& record,
                   std::int64_t offset_ns);

}  // namespace rose::replay
