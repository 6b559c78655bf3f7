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

bool effective(const RunResult& result, const Fault& fault) {
  const FaultOutcome* outcome = outcome_of(result, fault);
  return outcome != nullptr && outcome->effective();
}

// True if the fault permits the verdict `not-reproduced`: it is optional, or it was effective, or another fault of its
// group was.
bool satisfied(const RunResult& result, const Schedule& schedule, const Fault& fault) {
  if (fault.optional || effective(result, fault)) return true;
  if (fault.group.empty()) return false;
  return std::any_of(schedule.faults.begin(), schedule.faults.end(),
                     [&](const Fault& other) { return other.group == fault.group && effective(result, other); });
}

// Says why the fault was not effective: "fault 'cut' did not fire: its condition was never met", "fault 'cut' had no
// effect: no packet was stopped".
std::string miss_in_words(const RunResult& result, const Schedule& schedule, const Fault& fault) {
  const FaultOutcome* outcome = outcome_of(result, fault);
  // In a group, the fault that fired shows why the group had no effect.
  for (const Fault& other : schedule.faults) {
    const FaultOutcome* one = !fault.group.empty() && other.group == fault.group ? outcome_of(result, other) : nullptr;
    if (one != nullptr && one->fired) outcome = one;
  }
  if (outcome != nullptr && outcome->fired)
    return fmt::format("fault '{}' had no effect: {}", outcome->id, outcome->no_effect);
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
  std::vector<std::string> effective_ids;
  const Fault* unsatisfied = nullptr;  // the first fault that had to be effective, but was not
  const Fault* idle = nullptr;         // the first fault that was not effective, whether it had to be or not
  for (const Fault& fault : schedule.faults) {
    if (effective(result, fault)) effective_ids.push_back(fault.id);
    else if (idle == nullptr) idle = &fault;
    if (unsatisfied == nullptr && !satisfied(result, schedule, fault)) unsatisfied = &fault;
  }

  const auto missing = std::find_if(result.order.begin(), result.order.end(),
                                    [](const OrderOutcome& one) { return !one.came && one.kind != "fault"; });
  const std::string never = missing == result.order.end()
                                ? std::string()
                                : fmt::format("{} '{}' never came: {}", missing->kind, missing->name, missing->why_not);

  result.verdict = Verdict::inconclusive;
  if (!result.doubt.empty()) {
    result.reason = result.doubt;
    return;
  }
  if (result.oracle != OracleAnswer::unknown && !result.order_broken.empty()) {
    result.reason = fmt::format("not in the required order: {}", result.order_broken);
    return;
  }
  switch (result.oracle) {
    case OracleAnswer::unknown:
      result.reason = oracle_note.empty() ? std::string("the oracle could not decide")
                                          : fmt::format("the oracle could not decide: {}", oracle_note);
      return;
    case OracleAnswer::hit:
      if (schedule.faults.empty() && !never.empty()) {
        result.reason = fmt::format("the bug was reproduced, but {}", never);
      } else if (schedule.faults.empty()) {
        result.verdict = Verdict::reproduced;
        result.reason = schedule.order.empty() ? "the oracle found the bug; no fault was planned"
                                               : "the oracle found the bug in the required order";
      } else if (effective_ids.empty()) {
        result.reason = fmt::format("reproduces without faults: the oracle found the bug, but {}",
                                    miss_in_words(result, schedule, *idle));
      } else {
        result.verdict = Verdict::reproduced;
        result.reason = fmt::format("the oracle found the bug after {} {} fired",
                                    effective_ids.size() == 1 ? "fault" : "faults", quoted(effective_ids));
        if (unsatisfied != nullptr) result.reason += fmt::format("; {}", miss_in_words(result, schedule, *unsatisfied));
        else if (!never.empty()) result.reason += fmt::format("; {}", never);
      }
      return;
    case OracleAnswer::miss:
      if (unsatisfied != nullptr) {
        result.reason = miss_in_words(result, schedule, *unsatisfied);
      } else if (!never.empty()) {
        result.reason = never;
      } else {
        result.verdict = Verdict::not_reproduced;
        result.reason = schedule.faults.empty() ? "the oracle did not find the bug; no fault was planned"
                        : effective_ids.empty()
                            ? "no fault had to be effective and the oracle did not find the bug"
                            : "every planned fault was effective and the oracle did not find the bug";
        const auto left_out = std::find_if(schedule.faults.begin(), schedule.faults.end(), [&](const Fault& fault) {
          return fault.optional && !effective(result, fault) && fault.group.empty();
        });
        if (left_out != schedule.faults.end()) {
          if (!effective_ids.empty())
            result.reason =
                "every planned fault that is not optional was effective and the oracle did not find the bug";
          result.reason += fmt::format("; optional {}", miss_in_words(result, schedule, *left_out));
        }
      }
      return;
  }
}

bool any_effective(const RunResult& result) {
  return std::any_of(result.faults.begin(), result.faults.end(),
                     [](const FaultOutcome& outcome) { return outcome.effective(); });
}

}  // namespace rose::schedule
