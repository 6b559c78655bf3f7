// For a schedule that reproduced the bug too rarely: the same faults at other times of the workload, or with longer
// durations.
#include <algorithm>
#include <utility>

#include "base/units.h"
#include "diagnose/move.h"
#include "evidence/forms.h"

namespace rose::diagnose {

std::vector<std::int64_t> points_of_workload(std::int64_t length_ns) {
  return {rounded(length_ns / 4), kSecond / 2, rounded(length_ns / 2)};
}

std::vector<Trial> other_lengths(const World& world, const Schedule& lead) {
  constexpr int kMostTimes = 4;
  std::vector<Trial> trials;
  if (!world.uses("other-times")) return trials;
  for (std::size_t i = 0; i < lead.faults.size(); ++i) {
    const Fault& fault = lead.faults[i];
    if ((fault.kind != FaultKind::pause && fault.kind != FaultKind::partition) || fault.duration_ns <= 0) continue;
    const Candidate* candidate = world.candidate(fault.id);
    if (candidate == nullptr || candidate->plainness >= 1) continue;
    double share = kLead * kShareLonger;
    for (int times = 2; times <= kMostTimes && times * fault.duration_ns <= longest_workload(*world.config) / 2;
         times *= 2) {
      Trial t;
      t.schedule = lead;
      t.schedule.faults[i].duration_ns *= times;
      t.yield = share;
      t.why = fmt::format("the schedule reproduced the bug, but too rarely; {} for {}", fault.id,
                          format_duration(t.schedule.faults[i].duration_ns));
      trials.push_back(std::move(t));
      share *= kNextStep;
    }
  }
  return trials;
}

std::vector<Trial> other_times(const World& world, const Schedule& lead) {
  if (!world.uses("other-times")) return {};
  std::vector<std::size_t> first;  // faults that do not wait for another fault
  for (std::size_t i = 0; i < lead.faults.size(); ++i) {
    const Fault& fault = lead.faults[i];
    if (hits_by_count(fault.kind) || !fault.after.empty()) continue;
    if (!waits_only_for_time(fault) || fault.before || fault.when.size() > 1) return {};
    first.push_back(i);
  }
  if (first.empty() || world.workload_ns <= 0) return {};
  const auto time_of = [&](std::size_t i) {
    return lead.faults[i].when.empty() ? 0 : lead.faults[i].when[0].elapsed_ns;
  };
  std::int64_t begin = time_of(first[0]);
  for (const std::size_t i : first) begin = std::min(begin, time_of(i));
  std::vector<Trial> trials;
  const bool guessed = std::any_of(lead.faults.begin(), lead.faults.end(), [&](const Fault& fault) {
    const Candidate* candidate = world.candidate(fault.id);
    return candidate != nullptr && candidate->plainness < kLeastReported;
  });
  double share = kLead * kShareOtherTime * (world.plan.workload_ts != 0 && !guessed ? kTimeObserved : 1);
  for (const std::int64_t point : points_of_workload(world.workload_ns)) {
    if (std::abs(point - begin) < kSecond / 2) continue;
    Trial t;
    t.schedule = lead;
    for (const std::size_t i : first) t.schedule.faults[i].when = after_ns(time_of(i) + point - begin);
    t.yield = share;
    t.why = fmt::format("the schedule reproduced the bug, but too rarely; {} after the workload began",
                        format_duration(point));
    trials.push_back(std::move(t));
    share *= kNextStep;
  }
  return trials;
}

}  // namespace rose::diagnose
