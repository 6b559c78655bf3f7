// Which candidates a schedule stands for. Two schedules with the same candidates are one hypothesis about what happened
// in production, whatever times, shapes and conditions they try it with. Private to diagnose.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/words.h"

namespace rose::diagnose {

// The ids of its candidates; a fault that stands for none (a guess of the search) has its own id.
using Hypothesis = std::set<std::string>;
[[nodiscard]] Hypothesis hypothesis_of(const Plan& plan, const Schedule& schedule);
[[nodiscard]] std::string hypothesis_id(const Hypothesis& hypothesis);
// The candidate that the fault stands for; nullptr: it is a guess of the search.
[[nodiscard]] const Candidate* candidate_for(const Plan& plan, const Fault& fault);

// True if the kernel saw it happen and nothing that it saw before explains it: a signal was sent, a call failed as
// calls of this system do not usually fail, packets stayed unanswered. A silence that was not over when the dump was
// written is not certain, because an unused connection looks the same.
[[nodiscard]] bool is_certain(const Candidate& candidate);
// The ids of those of the schedule's faults whose candidates are certain.
[[nodiscard]] std::set<std::string> certain_faults(const Plan& plan, const Schedule& schedule);

// The user has checked that this hypothesis, or a candidate in it, did not happen (Inputs::ruled_out).
[[nodiscard]] bool ruled_out(const Inputs& inputs, const Plan& plan, const Schedule& schedule);

// For each candidate that is at least `share` times as likely as the likeliest of `found`, not in it, and of which no
// run was made alone: the schedule that tries it as it was seen. The likeliest first. `certain`: of those alone.
[[nodiscard]] std::vector<const Schedule*> untried(const Diagnosis& diagnosis, const Schedule& found, double share,
                                                   bool certain);

// The hypotheses that reproduced the failure and are not those of `found`, nor contain it: with what each would have
// left in production's evidence, and one observation that tells whether it happened.
[[nodiscard]] std::vector<Rival> rivals_of(const Inputs& inputs, const Diagnosis& diagnosis, const Schedule& found,
                                           const Tried& tried);

}  // namespace rose::diagnose
