// Finds the Java frames of a thread that a fault hits when a system call returns. After such a fault, the agent in the
// JVM can no longer report the positions of the threads. Just before the call, however, rose holds the thread, and the
// agent reports its frames. A thread has the same frames at the beginning and at the end of a call, so the frames found
// before the call complete the stack. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explain/runs.h"
#include "schedule/schedule.h"

namespace rose::explain {

// Returns a copy of the schedule in which each fault that hits a thread of a JVM when a call returns hits the thread
// just before this call instead. Nothing if no failing run lacks Java frames for that reason. `is_java`: whether a
// node, by its name, runs a JVM.
[[nodiscard]] std::optional<schedule::Schedule> before_calls(const schedule::Schedule& schedule,
                                                             const std::vector<Run>& runs,
                                                             const std::function<bool(const std::string&)>& is_java);

// Replaces the frames of each stack that lacks Java frames by those that the same fault found in a run of
// before_calls(), if both stacks end in the same native functions.
void complete_stacks(const std::vector<schedule::FaultOutcome>& reported, std::vector<schedule::FaultOutcome>& faults);

}  // namespace rose::explain
