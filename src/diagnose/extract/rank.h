// Causes before consequences: candidates in the order of the paper. Pure. Private to
// diagnose.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/extract/causes.h"

namespace rose::diagnose {

// A process that ends itself has a reason; if the dump shows one, that is tried first.
[[nodiscard]] std::vector<Candidate> explain_own_ends(std::vector<Candidate> processes, const Causes& causes,
                                                      std::vector<Candidate>& calls);

// All of these in the paper's order; equals keep their order. `without`: rules that are left out.
[[nodiscard]] std::vector<Candidate> in_order(std::vector<std::vector<Candidate>> kinds,
                                              const std::set<std::string>& without);

// Events and messages whose return in a run shows that it is close: everything that may be a consequence of the fault.
[[nodiscard]] std::vector<Observable> observables(const Inputs& inputs, const std::vector<Candidate>& candidates);

}  // namespace rose::diagnose
