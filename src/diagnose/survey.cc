#include "diagnose/survey.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/context.h"
#include "diagnose/words.h"

namespace rose::diagnose {
namespace {

constexpr int kUnmeetable = 1'000'000'000;  // the count of a condition that only counts events and must never be met

}  // namespace

const Answer* Survey::find(const Question& question) const {
  const auto found = answers.find(key_of(question));
  return found == answers.end() ? nullptr : &found->second;
}

std::string key_of(const Question& question) {
  schedule::Schedule schedule;
  Fault fault = counter_for(question, "q");
  schedule.faults.push_back(std::move(fault));
  return schedule::fingerprint(schedule);
}

Condition call_condition(const schedule::CallMatch& call) {
  Condition condition;
  condition.kind = ConditionKind::syscall;
  condition.call = call;
  return condition;
}

Condition visit_condition(const Fault& fault) {
  if (fault.kind != FaultKind::exception) return call_condition(fault.call);
  Condition condition;
  condition.kind = ConditionKind::function;
  condition.function = fault.function;
  condition.offset = fault.offset;
  condition.line = fault.at_line;
  return condition;
}

Fault counter_for(const Question& question, std::string id) {
  Fault fault;
  fault.id = std::move(id);
  fault.kind = schedule::FaultKind::crash;
  fault.node = question.node;
  fault.when = question.context;
  // this condition shows the time of the first event; the next condition counts the other events
  Condition first = question.what;
  first.count = 1;
  Condition further = first;
  further.count = kUnmeetable;
  fault.when.push_back(std::move(first));
  fault.when.push_back(std::move(further));
  return fault;
}

bool is_counter(const Fault& fault) { return !fault.when.empty() && fault.when.back().count >= kUnmeetable; }

bool comes_at_start(const Survey& survey, const schedule::Fault& fault) {
  if (fault.count > 1) return false;  // the ordinal of the call is known
  const Answer* answer = survey.find({fault.node, {}, visit_condition(fault)});
  return answer != nullptr && answer->times > 1 && answer->first_ns < 0;
}

std::optional<Answer> read_answer(const Question& question, const schedule::FaultOutcome& outcome) {
  const std::size_t context = question.context.size();
  if (outcome.conditions.size() != context + 2) return std::nullopt;
  Answer answer;
  if (context > 0) {
    answer.context_met = outcome.conditions[context - 1].met;
    answer.context_ns = outcome.conditions[context - 1].met_ns;
  }
  if (answer.context_met && outcome.conditions[context].met) {
    answer.first_ns = outcome.conditions[context].met_ns;
    answer.times = 1 + outcome.conditions[context + 1].seen;
  }
  return answer;
}

std::optional<std::string> moment_in(const trace::Trace& trace, std::string_view node,
                                     const std::vector<Condition>& when) {
  if (when.empty() || when.back().kind == ConditionKind::elapsed) return std::nullopt;
  if (std::any_of(when.begin(), when.end(),
                  [](const Condition& c) { return c.offset.value_or(0) != 0 || !c.node.empty(); }))
    return std::nullopt;
  std::size_t met = 0;
  std::uint64_t seen = 0;
  std::int64_t since = trace.meta.workload_ts;
  // number of events that meet the last condition, including those before the other conditions were met
  std::uint64_t of_kind = 0;
  for (const trace::Event& event : trace.events) {
    while (when[met].kind == ConditionKind::elapsed) {
      if (trace.meta.workload_ts == 0 || event.ts_ns < since + when[met].elapsed_ns) break;
      since += when[met].elapsed_ns;
      ++met;  // stays below when.size(), because the last condition is not a time
    }
    if (event.type != trace::EventType::af && event.type != trace::EventType::sys) continue;
    const std::string_view of = event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node);
    if (of != node) continue;
    if (meets(trace, event, when.back())) of_kind += times_of(event);
    const Condition& next = when[met];
    if (next.kind == ConditionKind::elapsed || !meets(trace, event, next)) continue;
    if ((seen += times_of(event)) < static_cast<std::uint64_t>(next.count)) continue;
    seen = 0;
    since = event.ts_ns;
    if (++met == when.size()) {
      Condition what = when.back();
      what.count = 1;
      return fmt::format("{} {}", key_of({std::string(node), {}, what}), of_kind);
    }
  }
  return std::nullopt;
}

std::optional<std::string> moment_of(const schedule::Schedule& schedule, const schedule::RunResult& result) {
  constexpr std::int64_t kSlack = 2'000'000;  // ns, tolerance between the clocks of the injector and of the tracer
  const trace::Trace& trace = result.trace;
  if (trace.events.empty() || trace.meta.workload_ts == 0) return std::nullopt;
  schedule::Schedule plain = schedule;
  std::string moments;
  for (Fault& fault : plain.faults) {
    const auto outcome = std::find_if(result.faults.begin(), result.faults.end(),
                                      [&](const schedule::FaultOutcome& o) { return o.id == fault.id; });
    const bool waits = std::any_of(fault.when.begin(), fault.when.end(),
                                   [](const Condition& c) { return c.kind != ConditionKind::elapsed; });
    if (!waits) continue;
    const Condition& last = fault.when.back();
    const bool visible =
        (last.kind == ConditionKind::function && last.offset.value_or(0) == 0) || last.kind == ConditionKind::syscall;
    if (outcome == result.faults.end() || !outcome->fired || !visible || !last.node.empty() ||
        fault.node.starts_with('@'))
      return std::nullopt;
    const std::int64_t until = trace.meta.workload_ts + outcome->fired_ns + kSlack;
    std::uint64_t times = 0;
    for (const trace::Event& event : trace.events) {
      const std::string_view of = event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node);
      if (event.ts_ns <= until && of == fault.node && meets(trace, event, last)) times += times_of(event);
    }
    if (times == 0) return std::nullopt;
    Condition what = last;
    what.count = static_cast<int>(std::min<std::uint64_t>(times, 1'000'000));
    fault.when = {what};
  }
  return schedule::fingerprint(plain);
}

}  // namespace rose::diagnose
