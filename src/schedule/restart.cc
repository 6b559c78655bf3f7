#include "schedule/restart.h"

#include <algorithm>

#include "base/units.h"

namespace rose::schedule {

Schedule planned_restart(const std::string& name, const std::string& node, int signal, std::int64_t workload_ns) {
  constexpr std::int64_t kStep = 100 * kMillisecond;
  Schedule schedule;
  schedule.name = name;
  Fault fault;
  fault.id = "restart-" + node;
  fault.kind = FaultKind::crash;
  fault.node = node;
  fault.signal = signal;
  fault.when = {Condition::elapsed(std::max(kStep, workload_ns / 3 / kStep * kStep))};
  schedule.faults.push_back(std::move(fault));
  return schedule;
}

}  // namespace rose::schedule
