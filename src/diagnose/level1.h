// Level 1: the faults of the dump themselves, in their order, spacing and durations; system calls
// one at a time, then those of one root cause together, then with the other faults.
#pragma once

#include <vector>

#include "diagnose/proposer.h"

namespace rose::diagnose {

// All first tries, in order. `workload_ns`: how long the workload takes; 0 unknown.
[[nodiscard]] std::vector<Proposal> level1_schedules(const Plan& plan, const config::Config& config,
                                                     std::int64_t workload_ns);

[[nodiscard]] std::unique_ptr<Proposer> make_level1(const SearchContext& context);

}  // namespace rose::diagnose
