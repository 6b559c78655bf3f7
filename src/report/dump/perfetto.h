// Converts a trace to Chrome's JSON trace format for ui.perfetto.dev and chrome://tracing.
#pragma once

#include "report/dump/show.h"

namespace rose::report {

// Shows one process per node. Failed calls, state-changing calls and functions are instants on the node's threads.
// Silences and pauses are spans on separate tracks. Times are relative to the first event.
void show_perfetto(const trace::Trace& trace, const ShowFilter& filter, const Output& out);

}  // namespace rose::report
