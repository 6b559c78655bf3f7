// What the test deployment does, as a value: how often the nodes make the calls and enter the places that the search
// may want to use, and after what. It comes from fault-free runs in which conditions are armed that can't be met, only
// counted.
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
  std::int64_t first_ns = 0;  // since the workload began; of times = 0 nothing
};

struct Survey {
  bool made = false;
  std::map<std::string, Answer> answers;  // by key_of()
  trace::Trace trace;                     // of a run without faults: the survey's own, else the control run's

  [[nodiscard]] const Answer* find(const Question& question) const;
};

[[nodiscard]] std::string key_of(const Question& question);

// True if nodes make the first such call, or reach the place, before the workload begins, and others later. What failed
// in production, long after its start, was hardly the first one.
[[nodiscard]] bool comes_at_start(const Survey& survey, const schedule::Fault& fault);

// A call, as something to be counted.
[[nodiscard]] schedule::Condition call_condition(const schedule::CallMatch& call);

// A condition that counts how often the injection point of a counted fault is reached.
[[nodiscard]] schedule::Condition visit_condition(const schedule::Fault& fault);

// The fault that asks. It waits for what never comes, so nothing is done; is_counter() knows such faults.
[[nodiscard]] schedule::Fault counter_for(const Question& question, std::string id);
[[nodiscard]] bool is_counter(const schedule::Fault& fault);
// The answer of the run; nothing if it says nothing about this fault.
[[nodiscard]] std::optional<Answer> read_answer(const Question& question, const schedule::FaultOutcome& outcome);

// Where conditions that a trace can show (functions, state-changing calls, times) would have been met in that run, as
// "which event, and which one of its kind": schedules of one moment do the same. Nothing: not met, or not to be seen.
[[nodiscard]] std::optional<std::string> moment_in(const trace::Trace& trace, std::string_view node,
                                                   const std::vector<schedule::Condition>& when);

// The same of a run: equal keys mean schedules whose faults came at the same moments, and so did the same. Nothing: a
// fault waits for what a trace does not show.
[[nodiscard]] std::optional<std::string> moment_of(const schedule::Schedule& schedule,
                                                   const schedule::RunResult& result);

}  // namespace rose::diagnose
