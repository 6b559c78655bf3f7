// Hypotheses about what happened in production: sets of candidates. Two schedules that inject the same candidates test
// one hypothesis, even if the times, shapes and conditions of their faults differ. Private to diagnose.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/words.h"

namespace rose::diagnose {

// The ids of the candidates; a fault that belongs to no candidate (a guess of the search) is represented by its own id.
using Hypothesis = std::set<std::string>;
[[nodiscard]] Hypothesis hypothesis_of(const Plan& plan, const Schedule& schedule);
[[nodiscard]] std::string hypothesis_id(const Hypothesis& hypothesis);
// The candidate that the fault injects; nullptr if it is a guess of the search.
[[nodiscard]] const Candidate* candidate_for(const Plan& plan, const Fault& fault);

// True if the kernel recorded the fault and no earlier event explains it: a signal was sent, a call failed in a way
// that is unusual for this system, packets stayed unanswered. A connection that was still silent when the dump was
// written is not certain evidence of a fault, because an unused connection looks the same.
[[nodiscard]] bool is_certain(const Candidate& candidate);
// The ids of the schedule's faults that inject certain candidates.
[[nodiscard]] std::set<std::string> certain_faults(const Plan& plan, const Schedule& schedule);

// True if the user has checked that this hypothesis, or a candidate in it, did not happen (Inputs::ruled_out).
[[nodiscard]] bool ruled_out(const Inputs& inputs, const Plan& plan, const Schedule& schedule);

// Returns the plan's schedules with a single candidate that no run has tried alone yet, the most likely first. The
// candidate is not in `found`, is at least `share` times as likely as the most likely candidate in `found`, and does
// not have the same cause as the faults of `found` (such as one full disk). `certain`: only certain candidates.
[[nodiscard]] std::vector<const Schedule*> untried(const Diagnosis& diagnosis, const Schedule& found, double share,
                                                   bool certain);

// The other hypotheses that reproduced the failure, except those that contain the hypothesis of `found`: each with the
// traces that it would have left in production, and one observation that shows whether it happened. `tried`: the record
// of `found`.
[[nodiscard]] std::vector<Rival> rivals_of(const Inputs& inputs, const Diagnosis& diagnosis, const Schedule& found,
                                           const Tried& tried);

}  // namespace rose::diagnose
