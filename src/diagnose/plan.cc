#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "diagnose/extract.h"
#include "diagnose/hypothesis.h"
#include "diagnose/identify.h"
#include "diagnose/move.h"
#include "diagnose/warnings.h"
#include "evidence/forms.h"
#include "evidence/logs/from_logs.h"
#include "evidence/nodes.h"

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
  for (evidence::Source& source : inputs.sources) std::erase_if(source.observations, left_out);
}

namespace {

// The ids of faults that are not candidates but guesses of the search. Ids of hypotheses contain these as well.
std::set<std::string> guessed_ids(const World& world) {
  std::set<std::string> ids;
  for (const std::vector<Trial>& trials : {plain_trials(world), rare_trials(world), limit_trials(world)})
    for (const Trial& t : trials) ids.merge(hypothesis_of(world.plan, t.schedule));
  return ids;
}

// Checks that every part of every id exists. Otherwise the search would try what a mistyped id was meant to rule out.
Result<void> check_ruled_out(const World& world) {
  std::set<std::string> known;
  for (const Candidate& c : world.plan.candidates) known.insert(c.id);
  const auto missing = [&]() -> std::optional<std::string> {
    for (const std::string& id : world.inputs->ruled_out)
      for (const std::string& part : split(id, '+'))
        if (!known.contains(part)) return id;
    return std::nullopt;
  };
  if (missing()) known.merge(guessed_ids(world));
  if (const std::optional<std::string> id = missing())
    return fail(
        ErrorKind::usage,
        fmt::format("--rule-out '{}': neither a candidate of this evidence nor a rival has this id", *id),
        "'rose diagnose --plan --json' prints the ids of candidates; the result of a diagnosis has those of rivals");
  return {};
}

// Removes the candidates that the user has ruled out, and adapts ranks and weights.
void leave_out_ruled_out(const Inputs& inputs, Plan& plan) {
  double left = 0;
  std::uint64_t events = 0;
  for (const Candidate& c : plan.candidates)
    if (inputs.ruled_out.contains(c.id)) events += c.count;
    else left += c.weight;
  const auto gone = [&](const Candidate& c) { return inputs.ruled_out.contains(c.id); };
  if (std::erase_if(plan.candidates, gone) == 0) return;
  plan.discarded.push_back({"ruled out by --rule-out", events});
  int rank = 0;
  std::vector<Candidate*> order;
  for (Candidate& c : plan.candidates) order.push_back(&c);
  std::stable_sort(order.begin(), order.end(),
                   [](const Candidate* a, const Candidate* b) { return a->rank < b->rank; });
  for (Candidate* c : order) {
    c->rank = ++rank;
    if (left > 0) c->weight /= left;
  }
}

}  // namespace

Result<Plan> make_plan(const Inputs& inputs, std::int64_t workload_ns, const profile::Restarts* restarts) {
  ROSE_ASSERT(inputs.config != nullptr);
  ROSE_TRY(const NodeMap nodes, NodeMap::make(inputs));
  const std::int64_t timeout = longest_workload(*inputs.config);
  if (restarts == nullptr && inputs.profile) restarts = &inputs.profile->restarts;
  Plan plan = extract(inputs, nodes, workload_ns > 0 ? std::min(workload_ns, timeout) : timeout, restarts);
  identify(plan, *inputs.config);
  for (const config::Node& node : inputs.config->nodes)
    if (!can_fail_calls(inputs, node.name) &&
        std::any_of(plan.candidates.begin(), plan.candidates.end(),
                    [&](const Candidate& c) { return c.node == node.name && c.kind == schedule::FaultKind::syscall; }))
      plan.notes.push_back(fmt::format(
          "{} is not started by rose, so its calls cannot be made to fail: such candidates are not tried", node.name));
  plan.warnings = warnings_of_plan(inputs, plan, workload_ns);
  if (!nodes.unmatched().empty()) plan.warnings.insert(plan.warnings.begin(), nodes.unmatched());
  World world;
  world.inputs = &inputs;
  world.config = inputs.config;
  world.plan = std::move(plan);
  world.workload_ns = workload_ns;
  if (!inputs.ruled_out.empty()) {
    ROSE_CHECK(check_ruled_out(world));
    leave_out_ruled_out(inputs, world.plan);
  }
  std::vector<Trial> trials = plain_trials(world);
  std::erase_if(trials, [&](const Trial& t) { return ruled_out(inputs, world.plan, t.schedule); });
  plan = std::move(world.plan);
  for (Trial& t : trials) {
    plan.schedules.push_back(std::move(t.schedule));
    plan.schedule_whys.push_back(std::move(t.why));
  }
  // Plans show a process or network candidate as it is in the first schedule that contains it, with time and duration.
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

void add_logs(Inputs& inputs, const logs::Evidence& evidence, const trace::Trace* control) {
  bool explained = true;
  if (const Result<Plan> plan = make_plan(inputs))  // otherwise the caller's plan will report the error
    explained = std::any_of(plan->candidates.begin(), plan->candidates.end(), [](const Candidate& c) {
      return !c.symptom && (c.kind != schedule::FaultKind::syscall || (!c.profiled && c.ordinariness <= 1));
    });
  evidence::add_logs(inputs, evidence, control, explained);
}

}  // namespace rose::diagnose
