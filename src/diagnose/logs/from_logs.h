// Logs as a trace: the survey's run without faults on the incident's time line, with the failures that messages report
// or that may be behind them. Sites and instances come from that run (ANDURIL, SOSP'24, section 5.2.3: its log and the
// failure's are aligned, and what happened between two messages of the one is put between the same two of the other).
#pragma once

#include "diagnose/diagnose.h"
#include "logs/evidence.h"
#include "trace/event.h"

namespace rose::diagnose {

// `control`: of a run without faults; nullptr when none was made (a plan): then only what messages name is there.
// Adds to `inputs`: a trace, what is known of its events (Inputs::log_evidence) and the observables.
void add_logs(Inputs& inputs, const logs::Evidence& evidence, const trace::Trace* control);

}  // namespace rose::diagnose
