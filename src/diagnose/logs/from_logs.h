// Turns logs into observations: what happened in the control run (the survey's run without faults) on the incident's
// time line, and the failures that messages report or that may have caused them. Sites and instances come from the
// control run, as in ANDURIL (SOSP'24, section 5.2.3): its log and the failure's are aligned, and an event between two
// messages of the one is placed between the same two messages of the other.
#pragma once

#include "diagnose/diagnose.h"
#include "logs/evidence.h"
#include "trace/event.h"

namespace rose::diagnose {

// `control`: the trace of a run without faults; nullptr if none was made (--plan): then there are only observations of
// what messages report. Adds a source and the observables to `inputs`.
void add_logs(Inputs& inputs, const logs::Evidence& evidence, const trace::Trace* control);

}  // namespace rose::diagnose
