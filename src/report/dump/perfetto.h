// A trace as Chrome's JSON trace format, which ui.perfetto.dev and chrome://tracing open.
#pragma once

#include "report/dump/show.h"

namespace rose::report {

// One process a node; its threads with their failed and state-changing calls and functions as
// instants; silences and pauses as spans on tracks of their own. Times are relative to the first.
void show_perfetto(const trace::Trace& trace, const ShowFilter& filter, const Output& out);

}  // namespace rose::report
