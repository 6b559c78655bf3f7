// Which candidates a schedule injects. Two schedules with the same candidates are one hypothesis about what happened in
// production, even if their times, shapes and conditions differ. Private to diagnose.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/words.h"

namespace rose::diagnose {

// The ids of its candidates; a fault that matches none (a guess of the search) has its own id.
using Hypothesis = std::set<std::string>;
[[nodiscard]] Hypothesis hypothesis_of(const Plan& plan, const Schedule& schedule);
[[nodiscard]] std::string hypothesis_id(const Hypothesis& hypothesis);
// The candidate that the fault injects; nullptr: it is a guess of the search.
[[nodiscard]] const Candidate* candidate_for(const Plan& plan, const Fault& fault);

// True if the kernel recorded it and nothing earlier explains it: a signal was sent, a call failed in a way that is
// unusual for this system, packets stayed unanswered. A silence that had not ended when the dump was written is not
// certain, because an unused connection looks the same.
[[nodiscard]] bool is_certain(const Candidate& candidate);
// The ids of those of the schedule's faults whose candidates are certain.
[[nodiscard]] std::set<std::string> certain_faults(const Plan& plan, const Schedule& schedule);

// True if the user has checked that this hypothesis, or a candidate in it, did not happen (Inputs::ruled_out).
[[nodiscard]] bool ruled_out(const Inputs& inputs, const Plan& plan, const Schedule& schedule);

// For each candidate that is at least `share` times as likely as the most likely one of `found`, is not in it, and has
// not been run alone: the schedule that tries it as observed, most likely first. `certain`: only certain candidates.
[[nodiscard]] std::vector<const Schedule*> untried(const Diagnosis& diagnosis, const Schedule& found, double share,
                                                   bool certain);

// The hypotheses that reproduced the failure and neither equal nor contain that of `found`, each with the traces that
// it would have left in production and one observation that shows whether it happened.
[[nodiscard]] std::vector<Rival> rivals_of(const Inputs& inputs, const Diagnosis& diagnosis, const Schedule& found,
                                           const Tried& tried);

}  // namespace rose::diagnose
