// Short texts about schedules for progress reports and notes. Private to diagnose.
#pragma once

#include <string>

#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::diagnose {

using schedule::CallMatch;
using schedule::Condition;
using schedule::ConditionKind;
using schedule::Fault;
using schedule::FaultKind;
using schedule::FaultOutcome;
using schedule::OracleAnswer;
using schedule::RunResult;
using schedule::Schedule;

// True for faults that hit the nth matching call, or the nth visit of a place, and `times` calls or visits in a row.
// Without conditions, such faults are armed from the start.
inline bool hits_by_count(FaultKind kind) { return kind == FaultKind::syscall || kind == FaultKind::exception; }

[[nodiscard]] std::string percent(double share);  // "80 %"
// For a progress report: "crash of n2", "2 faults: cut at 5s; crash-n1 after the 2nd rename(*/epoch)". Schedules that
// differ only in the moments of their faults have different texts.
[[nodiscard]] std::string short_words(const Schedule& schedule);

}  // namespace rose::diagnose
