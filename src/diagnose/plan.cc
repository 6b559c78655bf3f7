#include <algorithm>

#include "diagnose/extract.h"
#include "diagnose/level1.h"
#include "diagnose/nodes.h"
#include "base/units.h"

namespace rose::diagnose {

Result<Plan> make_plan(const Inputs& inputs, std::int64_t workload_ns) {
  ROSE_ASSERT(inputs.config != nullptr);
  ROSE_TRY(const NodeMap nodes, NodeMap::make(inputs));
  Plan plan;
  plan.notes = nodes.notes();
  const std::int64_t timeout = inputs.config->workload ? inputs.config->workload->timeout_ns : 60 * kSecond;
  extract(inputs, nodes, workload_ns > 0 ? std::min(workload_ns, timeout) : timeout, plan);
  for (const config::Node& node : inputs.config->nodes)
    if (node.attach && std::any_of(plan.candidates.begin(), plan.candidates.end(), [&](const Candidate& c) {
          return c.node == node.name && c.kind == schedule::FaultKind::syscall;
        }))
      plan.notes.push_back(fmt::format("{} is not started by rose, so its calls can't be made to fail: such candidates are not tried",
                                       node.name));
  for (Proposal& proposal : level1_schedules(plan, *inputs.config, workload_ns)) {
    plan.schedules.push_back(std::move(proposal.schedule));
    plan.schedule_whys.push_back(std::move(proposal.why));
  }
  // A candidate of the process and network kind shows the fault as the first schedule that has it makes it.
  for (Candidate& candidate : plan.candidates) {
    if (candidate.kind == schedule::FaultKind::syscall) continue;
    for (const schedule::Schedule& schedule : plan.schedules)
      if (const schedule::Fault* fault = schedule.find(candidate.fault.id); fault != nullptr) {
        candidate.fault = *fault;
        break;
      }
  }
  return plan;
}

}  // namespace rose::diagnose
