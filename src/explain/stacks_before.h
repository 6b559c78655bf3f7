// Finds the Java frames of a thread that a fault hits when a call returns. The process is then gone before the agent in
// its JVM can report the positions of its threads. Just before a call, however, rose holds the thread, and the agent
// reports its frames. A thread has the same frames at both ends of a call, so these frames complete the stack. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explain/runs.h"
#include "schedule/schedule.h"

namespace rose::explain {

// The schedule in which faults that hit a JVM's thread at the return of a call hit it just before the call. Empty if no
// failing run lacks Java frames for that reason. `is_java`: whether a node, by its name, runs a JVM.
[[nodiscard]] std::optional<schedule::Schedule> before_calls(const schedule::Schedule& schedule,
                                                             const std::vector<Run>& runs,
                                                             const std::function<bool(const std::string&)>& is_java);

// Completes stacks without Java frames by those that the same fault found in a run of before_calls(), if both end in
// the same native functions.
void complete_stacks(const std::vector<schedule::FaultOutcome>& reported, std::vector<schedule::FaultOutcome>& faults);

}  // namespace rose::explain
