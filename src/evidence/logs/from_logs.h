// Turns logs into observations: the failures that messages report or that may have caused the messages, and the events
// of the control run (the survey's run without faults), on the incident's time line. As in ANDURIL (SOSP'24, section
// 5.2.3), the places of possible faults come from the control run: its log is aligned with the failure's log, and an
// event between two messages of the control run is placed between the same two messages of the failure.
#pragma once

#include "evidence/evidence.h"
#include "logs/evidence.h"
#include "trace/event.h"

namespace rose::evidence {

// `control`: the trace of a run without faults; nullptr if none was made (--plan): then there are only observations of
// what messages report. `dumps_explain`: the dumps contain a fault that is worth a trial, so silences and pauses that
// only messages report are less likely. Adds a source and the observables to `inputs`.
void add_logs(Evidence& inputs, const logs::Evidence& evidence, const trace::Trace* control, bool dumps_explain);

}  // namespace rose::evidence
