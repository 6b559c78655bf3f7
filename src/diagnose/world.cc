#include <algorithm>

#include "base/units.h"
#include "diagnose/forms.h"
#include "diagnose/move.h"

namespace rose::diagnose {

const std::vector<Part>& parts() {
  static const std::vector<Part> kParts{
      {"survey", "counting beforehand what the test deployment does"},
      {"groups", "many unlikely faults in one run"},
      {"ranges", "failing ranges of calls to find the one that counts"},
      {"narrowing", "halving what has many faults before it is tested"},
      {"moments", "taking schedules whose faults come at one moment for one"},
      {"feedback", "learning from what runs bring back of the dump"},
      {"nearness", "believing less in what is over long before the dump ends"},
      {"surer", "going on from what was accepted although it missed at times"},
      {"window", "arming what may not come by as alternatives, once a run fired nothing"},
      {"doubt", "letting others come before what shows the bug, but nothing of what the logs say of it"},
      {"replicas", "trying the nodes in turn of which a host of production may be any"},
      {"turns", "kinds of moves by what they promise, instead of level after level"},
  };
  return kParts;
}

bool World::level(int of) const {
  const std::vector<int>& levels = config->diagnose.levels;
  return std::find(levels.begin(), levels.end(), of) != levels.end();
}

const Candidate* World::candidate(std::string_view fault_id) const {
  for (const Candidate& c : plan.candidates)
    if (c.fault.id == fault_id) return &c;
  return nullptr;
}

double World::believed(const schedule::Schedule& schedule) const {
  if (belief.empty() || schedule.faults.empty()) return 1;
  double sum = 0;
  for (const schedule::Fault& fault : schedule.faults) {
    const auto known = belief.find(fault.id);
    sum += known == belief.end() ? 1 : known->second;
  }
  return sum / static_cast<double>(schedule.faults.size());
}

std::vector<const Candidate*> by_weight(const Plan& plan) {
  std::vector<const Candidate*> all;
  all.reserve(plan.candidates.size());
  for (const Candidate& c : plan.candidates) all.push_back(&c);
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate* a, const Candidate* b) { return a->weight > b->weight; });
  return all;
}

const schedule::FaultOutcome* outcome_of(const schedule::RunResult& result, std::string_view id) {
  for (const schedule::FaultOutcome& outcome : result.faults)
    if (outcome.id == id) return &outcome;
  return nullptr;
}

std::vector<schedule::Condition> when_seen(const World& world, const Candidate& c) {
  if (world.plan.workload_ts == 0 || c.first_ts <= world.plan.workload_ts) return {};
  const std::int64_t most = (world.workload_ns > 0 ? world.workload_ns : longest_workload(*world.config)) / 2;
  return {elapsed(std::min(rounded(c.first_ts - world.plan.workload_ts), std::max(kTimeStep, rounded(most))))};
}

std::string context_words(const schedule::Condition& c) {
  if (c.kind == schedule::ConditionKind::function) return c.function;
  return fmt::format("{}({})", c.call.syscall, c.call.path.value_or(c.call.peer.value_or("")));
}

bool can_hold_calls(const Inputs& inputs, std::string_view name) {
  const config::Node* node = inputs.config->find(name);
  return node == nullptr || node->entered_by_rose();
}

bool can_fail_calls(const Inputs& inputs, std::string_view node) {
  return inputs.overrides || can_hold_calls(inputs, node);
}

}  // namespace rose::diagnose
