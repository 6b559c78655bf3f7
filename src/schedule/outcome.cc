#include "schedule/outcome.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/schedule.h"

namespace rose::schedule {
namespace {

const FaultOutcome* outcome_of(const RunResult& result, const Fault& fault) {
  const auto it = std::find_if(result.faults.begin(), result.faults.end(),
                               [&](const FaultOutcome& outcome) { return outcome.id == fault.id; });
  return it == result.faults.end() ? nullptr : &*it;
}

bool fired(const RunResult& result, const Fault& fault) {
  const FaultOutcome* outcome = outcome_of(result, fault);
  return outcome != nullptr && outcome->fired;
}

bool satisfied(const RunResult& result, const Schedule& schedule, const Fault& fault) {
  if (fired(result, fault)) return true;
  if (fault.group.empty()) return false;
  return std::any_of(schedule.faults.begin(), schedule.faults.end(),
                     [&](const Fault& other) { return other.group == fault.group && fired(result, other); });
}

// "fault 'cut' did not fire: its condition was never met".
std::string miss_in_words(const RunResult& result, const Fault& fault) {
  const FaultOutcome* outcome = outcome_of(result, fault);
  std::string why = "the run has no record of it";
  if (outcome != nullptr && !outcome->why_not.empty()) {
    why = outcome->why_not;
  } else if (outcome != nullptr) {
    why = outcome->armed ? "its conditions were met, but its injection point was not reached"
                         : "its conditions were not met";
  }
  if (fault.group.empty()) return fmt::format("fault '{}' did not fire: {}", fault.id, why);
  return fmt::format("no fault of group '{}' fired: '{}': {}", fault.group, fault.id, why);
}

std::string quoted(const std::vector<std::string>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += i + 1 == ids.size() ? " and " : ", ";
    text += fmt::format("'{}'", ids[i]);
  }
  return text;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced: return "reproduced";
    case Verdict::not_reproduced: return "not-reproduced";
    case Verdict::inconclusive: return "inconclusive";
  }
  return "inconclusive";
}

void judge(RunResult& result, const Schedule& schedule, std::string_view oracle_note) {
  std::vector<std::string> fired_ids;
  const Fault* unsatisfied = nullptr;
  for (const Fault& fault : schedule.faults) {
    if (fired(result, fault)) fired_ids.push_back(fault.id);
    if (unsatisfied == nullptr && !satisfied(result, schedule, fault)) unsatisfied = &fault;
  }

  const auto missing = std::find_if(result.order.begin(), result.order.end(),
                                    [](const OrderOutcome& one) { return !one.came && one.kind != "fault"; });
  const std::string never = missing == result.order.end()
                                ? std::string()
                                : fmt::format("{} '{}' never came: {}", missing->kind, missing->name, missing->why_not);

  if (result.oracle != OracleAnswer::unknown && !result.order_broken.empty()) {
    result.verdict = Verdict::inconclusive;
    result.reason = fmt::format("not in the required order: {}", result.order_broken);
    return;
  }
  switch (result.oracle) {
    case OracleAnswer::unknown:
      result.verdict = Verdict::inconclusive;
      result.reason = oracle_note.empty() ? std::string("the oracle could not decide")
                                          : fmt::format("the oracle could not decide: {}", oracle_note);
      return;
    case OracleAnswer::hit:
      if (schedule.faults.empty() && !never.empty()) {
        result.verdict = Verdict::inconclusive;
        result.reason = fmt::format("the bug was reproduced, but {}", never);
      } else if (schedule.faults.empty()) {
        result.verdict = Verdict::reproduced;
        result.reason = schedule.order.empty() ? "the oracle found the bug; no fault was planned"
                                               : "the oracle found the bug in the required order";
      } else if (fired_ids.empty()) {
        result.verdict = Verdict::inconclusive;
        result.reason =
            fmt::format("the oracle found the bug without faults, but {}", miss_in_words(result, *unsatisfied));
      } else {
        result.verdict = Verdict::reproduced;
        result.reason = fmt::format("the oracle found the bug after {} {} fired",
                                    fired_ids.size() == 1 ? "fault" : "faults", quoted(fired_ids));
        if (unsatisfied != nullptr) result.reason += fmt::format("; {}", miss_in_words(result, *unsatisfied));
        else if (!never.empty()) result.reason += fmt::format("; {}", never);
      }
      return;
    case OracleAnswer::miss:
      if (unsatisfied != nullptr) {
        result.verdict = Verdict::inconclusive;
        result.reason = miss_in_words(result, *unsatisfied);
      } else if (!never.empty()) {
        result.verdict = Verdict::inconclusive;
        result.reason = never;
      } else {
        result.verdict = Verdict::not_reproduced;
        result.reason = schedule.faults.empty() ? "the oracle did not find the bug; no fault was planned"
                                                : "every planned fault fired and the oracle did not find the bug";
      }
      return;
  }
}

}  // namespace rose::schedule
