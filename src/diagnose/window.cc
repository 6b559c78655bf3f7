#include "diagnose/window.h"

#include <algorithm>

namespace rose::diagnose {
namespace {

std::string alternative_id(std::size_t i) { return fmt::format("alternative-{}", i + 1); }

}  // namespace

void Window::nothing_fired() { size_ = std::min(2 * size_, kMostGroup); }

bool may_be_unreached(const World& world, const Trial& t) {
  if (t.exploratory || t.many || t.repeat || t.level > 2 || t.schedule.faults.size() != 1) return false;
  const Fault& fault = t.schedule.faults[0];
  if (!fault.group.empty() || !fault.after.empty()) return false;
  if (hits_by_count(fault.kind)) {
    const Answer* answer = world.survey.find({fault.node, fault.when, visit_condition(fault)});
    return answer != nullptr && answer->times < static_cast<std::uint64_t>(fault.count);
  }
  if (!world.survey.made || (fault.kind != FaultKind::crash && fault.kind != FaultKind::pause)) return false;
  if (fault.before) return true;
  return !waits_only_for_time(fault) && !moment_in(world.survey.trace, fault.node, fault.when);
}

Trial in_one(const std::vector<Alternative>& alternatives, const std::string& name) {
  Trial all;
  all.level = alternatives.front().what.level;
  all.schedule.name = name;
  all.why = fmt::format("{} trials that may not be reached, whichever comes first", alternatives.size());
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    all.schedule.faults.push_back(alternatives[i].what.schedule.faults[0]);
    all.schedule.faults.back().id = alternative_id(i);
    all.schedule.faults.back().group = "window";
  }
  return all;
}

std::size_t first_of(const std::vector<Alternative>& alternatives, const RunResult& result) {
  for (std::size_t i = 0; i < alternatives.size(); ++i)
    if (const FaultOutcome* outcome = outcome_of(result, alternative_id(i)); outcome != nullptr && outcome->fired)
      return i;
  return alternatives.size();
}

RunResult as_if_alone(const std::vector<Alternative>& alternatives, std::size_t which, const RunResult& result) {
  RunResult run;
  run.number = result.number;
  run.verdict = result.verdict;
  run.oracle = result.oracle;
  run.reason = result.reason;
  run.seconds = result.seconds;
  run.messages_seen = result.messages_seen;
  if (const FaultOutcome* outcome = outcome_of(result, alternative_id(which))) {
    run.faults.push_back(*outcome);
    run.faults[0].id = alternatives[which].what.schedule.faults[0].id;
    run.faults[0].withdrawn = false;
  }
  return run;
}

}  // namespace rose::diagnose
