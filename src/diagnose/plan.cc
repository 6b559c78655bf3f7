#include <algorithm>

#include "base/units.h"
#include "diagnose/extract.h"
#include "diagnose/features.h"
#include "diagnose/forms.h"
#include "diagnose/move.h"
#include "diagnose/nodes.h"

namespace rose::diagnose {

void leave_out_evidence(Inputs& inputs) {
  if (inputs.without.contains("profile")) inputs.profile.reset();
  const auto left_out = [&](const trace::Event& event) {
    switch (event.type) {
      case trace::EventType::ps:
        return event.state != trace::ProcessState::started && inputs.without.contains("processes");
      case trace::EventType::nd: return inputs.without.contains("silences");
      case trace::EventType::scf: return inputs.without.contains("calls");
      case trace::EventType::af:
      case trace::EventType::sys: return false;
    }
    return false;
  };
  for (trace::Trace& trace : inputs.traces) std::erase_if(trace.events, left_out);
}

Result<Plan> make_plan(const Inputs& inputs, std::int64_t workload_ns) {
  ROSE_ASSERT(inputs.config != nullptr);
  ROSE_TRY(const NodeMap nodes, NodeMap::make(inputs));
  const std::int64_t timeout = longest_workload(*inputs.config);
  Plan plan = extract(inputs, nodes, workload_ns > 0 ? std::min(workload_ns, timeout) : timeout);
  describe(plan, *inputs.config);
  for (const config::Node& node : inputs.config->nodes)
    if (!can_fail_calls(inputs, node.name) &&
        std::any_of(plan.candidates.begin(), plan.candidates.end(),
                    [&](const Candidate& c) { return c.node == node.name && c.kind == schedule::FaultKind::syscall; }))
      plan.notes.push_back(fmt::format(
          "{} is not started by rose, so its calls cannot be made to fail: such candidates are not tried", node.name));
  World world;
  world.inputs = &inputs;
  world.config = inputs.config;
  world.plan = std::move(plan);
  world.workload_ns = workload_ns;
  std::vector<Try> tries = plain_tries(world);
  plan = std::move(world.plan);
  for (Try& t : tries) {
    plan.schedules.push_back(std::move(t.schedule));
    plan.schedule_whys.push_back(std::move(t.why));
  }
  // A candidate of the process and network kind shows the fault as the first schedule that has it makes it.
  for (Candidate& candidate : plan.candidates) {
    if (hits_by_count(candidate.kind)) continue;
    for (const schedule::Schedule& schedule : plan.schedules)
      if (const schedule::Fault* fault = schedule.find(candidate.fault.id); fault != nullptr) {
        candidate.fault = *fault;
        break;
      }
  }
  return plan;
}

std::vector<const Candidate*> by_rank(const Plan& plan) {
  std::vector<const Candidate*> list;
  for (const Candidate& candidate : plan.candidates) list.push_back(&candidate);
  std::stable_sort(list.begin(), list.end(), [](const Candidate* a, const Candidate* b) { return a->rank < b->rank; });
  return list;
}

}  // namespace rose::diagnose
