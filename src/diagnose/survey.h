// The survey: how often the nodes of the test deployment make the calls and reach the places that trials may use, and
// after which events. Its data come from runs in which no fault fires: the faults of their schedules only count events,
// because they have a condition that is never met.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/outcome.h"
#include "schedule/schedule.h"
#include "trace/event.h"

namespace rose::diagnose {

// How often does the node meet `what`, counted from the point at which it has met the conditions of `context` in order?
struct Question {
  std::string node;
  std::vector<schedule::Condition> context;
  schedule::Condition what;
};

struct Answer {
  bool context_met = true;
  std::int64_t context_ns = 0;  // when the context was met, since the workload began
  std::uint64_t times = 0;
  std::int64_t first_ns = 0;  // when `what` was first met, since the workload began; meaningless if `times` is 0
};

struct Survey {
  bool made = false;                      // false: no answers, because no survey was made or it failed
  std::map<std::string, Answer> answers;  // by key_of()
  trace::Trace trace;  // of a run without faults: the survey's if there is one, otherwise the control run's

  [[nodiscard]] const Answer* find(const Question& question) const;
};

// Identifies a question; equal questions have equal keys.
[[nodiscard]] std::string key_of(const Question& question);

// True if the first call that the fault matches is made before the workload begins, and further matching calls are made
// later. Then the first call is hardly the one that failed in production, because that one failed long after the start.
[[nodiscard]] bool comes_at_start(const Survey& survey, const schedule::Fault& fault);

// A condition that is met by each call that `call` matches.
[[nodiscard]] schedule::Condition call_condition(const schedule::CallMatch& call);

// A condition that is met whenever the injection point of a syscall or exception fault is reached.
[[nodiscard]] schedule::Condition visit_condition(const schedule::Fault& fault);

// The fault whose outcome contains the answer to a question. Its last condition has a count that is never reached, so
// the fault never fires. is_counter() recognises it by this count.
[[nodiscard]] schedule::Fault counter_for(const Question& question, std::string id);
[[nodiscard]] bool is_counter(const schedule::Fault& fault);
// The answer that the outcome of the fault from counter_for() contains; nothing if the fault was not armed.
[[nodiscard]] std::optional<Answer> read_answer(const Question& question, const schedule::FaultOutcome& outcome);

// The moment at which the conditions would have been met in the run of this trace: the last condition and the ordinal
// of the event that met it, as text. Schedules with equal moments have the same effect. Nothing if the conditions were
// not met, or if a trace does not show them (only functions, state-changing calls and times are visible).
[[nodiscard]] std::optional<std::string> moment_in(const trace::Trace& trace, std::string_view node,
                                                   const std::vector<schedule::Condition>& when);

// The moments at which the faults of a schedule fired in a run, as a key: schedules with equal keys have the same
// effect. Nothing if a fault did not fire, or waits for something that a trace does not show.
[[nodiscard]] std::optional<std::string> moment_of(const schedule::Schedule& schedule,
                                                   const schedule::RunResult& result);

}  // namespace rose::diagnose
