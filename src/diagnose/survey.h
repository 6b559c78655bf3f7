// What the test deployment does, as a value: how often the nodes make the calls and reach the places that the search
// may want to use, and after which events. It comes from fault-free runs with conditions that only count and are never
// met.
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

// How often does `what` follow on the node, once `context` was met in order?
struct Question {
  std::string node;
  std::vector<schedule::Condition> context;
  schedule::Condition what;
};

struct Answer {
  bool context_met = true;
  std::int64_t context_ns = 0;  // since the workload began
  std::uint64_t times = 0;
  std::int64_t first_ns = 0;  // since the workload began; nothing if times = 0
};

struct Survey {
  bool made = false;
  std::map<std::string, Answer> answers;  // by key_of()
  trace::Trace trace;                     // of a run without faults: the survey's own, else the control run's

  [[nodiscard]] const Answer* find(const Question& question) const;
};

[[nodiscard]] std::string key_of(const Question& question);

// True if nodes make the first such call, or reach the place, before the workload begins, and later ones after it. A
// failure in production, long after its start, was hardly the first call.
[[nodiscard]] bool comes_at_start(const Survey& survey, const schedule::Fault& fault);

// A condition that matches the call, for counting.
[[nodiscard]] schedule::Condition call_condition(const schedule::CallMatch& call);

// A condition that counts how often the injection point of a counted fault is reached.
[[nodiscard]] schedule::Condition visit_condition(const schedule::Fault& fault);

// The fault that does the counting. It waits for a condition that is never met, so it never fires; is_counter()
// recognises such faults.
[[nodiscard]] schedule::Fault counter_for(const Question& question, std::string id);
[[nodiscard]] bool is_counter(const schedule::Fault& fault);
// The answer from a run's result; nothing if it does not mention this fault.
[[nodiscard]] std::optional<Answer> read_answer(const Question& question, const schedule::FaultOutcome& outcome);

// When conditions that a trace can show (functions, state-changing calls, times) would have been met in that run, as
// "which event, and its ordinal among its kind": schedules with the same moment have the same effect. Nothing: not met,
// or not visible in a trace.
[[nodiscard]] std::optional<std::string> moment_in(const trace::Trace& trace, std::string_view node,
                                                   const std::vector<schedule::Condition>& when);

// The same for a schedule and a run: equal keys mean that the faults fire at the same moments and so have the same
// effect. Nothing: a fault waits for something that a trace does not show.
[[nodiscard]] std::optional<std::string> moment_of(const schedule::Schedule& schedule,
                                                   const schedule::RunResult& result);

}  // namespace rose::diagnose
