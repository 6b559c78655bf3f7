// From the events of the dumps to ranked candidates: benign failures are dropped and counted, failures that an earlier
// fault explains are symptoms and rank last, equal failures form one candidate.
//
// The stages are functions from values to values, in this order: facts (extract/facts.h), processes, network, failed
// calls, exceptions and clocks (extract/processes.h and so on), and the ranking (extract/rank.h). What explains
// something is a Cause (extract/causes.h). A stage returns its candidates, what it dropped and its remarks as Extracted
// (extract/extracted.h).
#pragma once

#include <cstdint>

#include "diagnose/diagnose.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

// The candidates (ranked), observables, what was discarded, notes and the times of the dump; no schedules. The workload
// of the test deployment surely does not last longer than `longest_ns`;
// `restarts` (or nullptr) is what follows restarts there.
[[nodiscard]] Plan extract(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns,
                           const profile::Restarts* restarts);

}  // namespace rose::diagnose
