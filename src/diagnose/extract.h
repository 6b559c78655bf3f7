// Turns the events of the dumps into ranked candidates. Benign failures are dropped and counted. Failures that an
// earlier fault explains become symptoms, which rank last. Equal failures form one candidate.
//
// The stages are pure functions, which are called in this order: facts (evidence/facts.h); processes, network, failed
// calls, exceptions, clocks, limits and unexplained ends (extract/processes.h and so on); and the ranking
// (extract/rank.h). An event that explains other events is a Cause (evidence/causes.h). A stage returns its candidates,
// dropped events and remarks as Extracted (extract/extracted.h).
#pragma once

#include <cstdint>

#include "diagnose/diagnose.h"
#include "evidence/nodes.h"

namespace rose::diagnose {

// Returns the plan with ranked candidates, observables, discarded events, notes and the times of the dump, without
// schedules. `longest_ns`: an upper bound of the duration of the test deployment's workload. `restarts`: failures that
// follow restarts in the test deployment, or nullptr.
[[nodiscard]] Plan extract(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns,
                           const profile::Restarts* restarts);

}  // namespace rose::diagnose
