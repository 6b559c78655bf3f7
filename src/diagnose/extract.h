// From the events of the dumps to ranked candidates: what is benign is dropped and counted, what an
// earlier fault explains is a symptom and ranks last, equal failures are one candidate.
#pragma once

#include <cstdint>

#include "diagnose/diagnose.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

// Fills plan.candidates (ranked), discarded, failures, notes and the times of the dump. The workload
// of the test deployment surely does not last longer than `longest_ns`.
void extract(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns, Plan& plan);

}  // namespace rose::diagnose
