// Sorts candidates in the order of the paper, causes before consequences. Pure. Private to diagnose.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "evidence/causes.h"

namespace rose::diagnose {

// Marks ends that a process caused itself as symptoms if the dump contains a possible reason, which is then tried
// first. Marks failed calls right before such an end as fatal.
[[nodiscard]] std::vector<Candidate> explain_own_ends(std::vector<Candidate> processes, const Causes& causes,
                                                      std::vector<Candidate>& calls);

// All candidates in the paper's order; equal ones keep their order. `kinds`: the candidates of each stage. `without`:
// names of parts() that are left out.
[[nodiscard]] std::vector<Candidate> in_order(std::vector<std::vector<Candidate>> kinds,
                                              const std::set<std::string>& without);

// The events and messages that may be consequences of the fault that is searched for. The more of them occur in a run,
// the more the run resembles the failure.
[[nodiscard]] std::vector<Observable> observables(const Inputs& inputs, const std::vector<Candidate>& candidates);

}  // namespace rose::diagnose
