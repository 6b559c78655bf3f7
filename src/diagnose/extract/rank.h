// Causes before consequences: candidates in the order of the paper, and how much is believed of each. Pure. Inside this room only.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/extract/causes.h"

namespace rose::diagnose {

// Processes that end themselves do so for a reason; if the dump holds one, that is tried first.
[[nodiscard]] std::vector<Candidate> explain_own_ends(std::vector<Candidate> processes, const Causes& causes, std::vector<Candidate>& calls);

// All of these, by rank; of equal ones those that stand first here.
[[nodiscard]] std::vector<Candidate> ranked(std::vector<std::vector<Candidate>> kinds);

// The paper's order as odds. `nearness`: what was over long before the dumps' end is believed less.
[[nodiscard]] std::vector<Candidate> weighed(std::vector<Candidate> ranked, std::int64_t longest_ns, bool nearness);

// What tells, when it comes back, that a run was on the right way: whatever may be a consequence.
[[nodiscard]] std::vector<Observable> observables(const Inputs& inputs, const std::vector<Candidate>& ranked);

}  // namespace rose::diagnose
