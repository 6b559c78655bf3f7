#include "diagnose/extract.h"
#include "diagnose/level1.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

Result<Plan> make_plan(const Inputs& inputs, std::int64_t workload_ns) {
  ROSE_ASSERT(inputs.config != nullptr);
  ROSE_TRY(const NodeMap nodes, NodeMap::make(inputs));
  Plan plan;
  plan.notes = nodes.notes();
  extract(inputs, nodes, plan);
  for (Proposal& proposal : level1_schedules(plan, *inputs.config, workload_ns)) {
    plan.schedules.push_back(std::move(proposal.schedule));
    plan.schedule_whys.push_back(std::move(proposal.why));
  }
  // A candidate shows the fault as the first schedule that has it would make it.
  for (Candidate& candidate : plan.candidates)
    for (const schedule::Schedule& schedule : plan.schedules)
      if (const schedule::Fault* fault = schedule.find(candidate.fault.id); fault != nullptr && candidate.kind != schedule::FaultKind::syscall) {
        candidate.fault = *fault;
        break;
      }
  return plan;
}

}  // namespace rose::diagnose
