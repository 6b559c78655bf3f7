// From the events of the dumps to ranked candidates: what is benign is dropped and counted, what an
// earlier fault explains is a symptom and ranks last, equal failures are one candidate.
// One stage after the other, each a function from values to a value: facts (extract_facts.h), what processes did, what
// the network did, which calls failed, exceptions, clocks (extract_processes.h and so on), and their order (rank.h).
// What explains something is a Cause (extract_causes.h); candidates, what is left out and what is to be said of a stage
// are Sifted (extract_sifted.h).
#pragma once

#include <cstdint>

#include "diagnose/diagnose.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

// The candidates (ranked), observables, what was discarded, notes and the times of the dump; no schedules. The workload
// of the test deployment surely does not last longer than `longest_ns`.
[[nodiscard]] Plan extract(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns);

}  // namespace rose::diagnose
