#include <algorithm>

#include "base/units.h"
#include "diagnose/move.h"
#include "evidence/forms.h"

namespace rose::diagnose {

const std::vector<Part>& parts() {
  using Of = Part::Of;
  static const std::vector<Part> kParts{
      {"profile", "failures and rates that are normal for this system", Of::evidence},
      {"processes", "ends and pauses of processes that dumps show", Of::evidence},
      {"silences", "silent connections that dumps show", Of::evidence},
      {"calls", "failed calls that dumps show", Of::evidence},
      {"guesses", "guesses that no message reports: calls, ends and partitions close to logged events", Of::evidence},
      {"unexplained", "the last resources that a node used before it ended itself for no recorded reason",
       Of::evidence},
      {"symptoms", "ranking last the failures that an earlier fault explains", Of::rank},
      {"kinds", "giving process and network faults a higher score than failed calls", Of::rank},
      {"errors", "giving errors of disks and resources a higher score than everyday errors", Of::rank},
      {"own-ends", "lowering the score of processes that ended themselves or waited for a disk", Of::rank},
      {"rarer", "lowering the score of failures that the profile contains, although far more rarely", Of::rank},
      {"restarts", "leaving out, or ranking last, failures that follow the restart of a node", Of::rank},
      {"usual", "lowering the score of events that happen all the time", Of::rank},
      {"programs", "lowering the score of processes whose program the test deployment does not run", Of::rank},
      {"fatal", "raising the score of a failed call right after which its node ended itself", Of::rank},
      {"first-error", "ranking first a disk error that came before all other faults", Of::rank},
      {"plainness", "lowering the score of faults that logs report less clearly", Of::rank},
      {"nearness", "lowering the score of faults that ended long before the dump does", Of::rank},
      {"groups", "many unlikely faults in one run", Of::generator},
      {"ranges", "failing ranges of calls to find the relevant one", Of::generator},
      {"replicas", "trying in turn all nodes that a production host may correspond to", Of::generator},
      {"nth", "failing the nth matching call instead of the first", Of::generator},
      {"contexts", "faults that wait for the events that preceded them", Of::generator},
      {"elsewhere", "faults at the event that another node produced right before them", Of::generator},
      {"places", "faults at a place inside the last function or between the calls after a context", Of::generator},
      {"before", "a partition or pause that no log reports, before a logged fault", Of::generator},
      {"limits", "the real limits behind failed calls, ends and waits", Of::generator},
      {"rare", "delays, loss, fsync that does not sync and other shapes that the evidence only hints at",
       Of::generator},
      {"other-times", "another time or length for faults that reproduced the bug too rarely", Of::generator},
      {"shapes", "other shapes of process and network faults, and of calls", Of::generator},
      {"parts", "parts of an incident, and each of its faults alone", Of::generator},
      {"one-cause", "failing calls together that failed with the same resource error at the same time", Of::generator},
      {"mixed", "calls together with the process and network faults", Of::generator},
      {"pairs", "two calls together", Of::generator},
      {"survey", "counting in advance what the test deployment does"},
      {"ahead", "making runs before they are requested, in parallel to others, if the machine has room for them"},
      {"narrowing", "halving schedules with many faults before testing them"},
      {"moments", "treating schedules as one if their faults fire at the same moment"},
      {"feedback", "learning from the evidence that runs reproduce"},
      {"surer", "refining an accepted schedule that sometimes missed"},
      {"rivals", "trying other possible causes besides the found one, certain ones first"},
      {"pairs-first", "pairs of faults that missed alone, before either is taken to levels 2 and 3"},
      {"window", "arming faults that may not be reached as alternatives, after a run in which none fired"},
      {"doubt", "postponing a schedule that reproduces the bug but none of the logs' messages"},
      {"turns", "choosing kinds of moves by their expected yield instead of level after level"},
  };
  return kParts;
}

std::string_view part_name(Part::Of of) {
  switch (of) {
    case Part::Of::evidence: return "evidence";
    case Part::Of::rank: return "rank";
    case Part::Of::generator: return "generator";
    case Part::Of::search: return "search";
  }
  return "";
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

double World::average_factor(const schedule::Schedule& schedule) const {
  if (factors.empty() || schedule.faults.empty()) return 1;
  double sum = 0;
  for (const schedule::Fault& fault : schedule.faults) {
    const auto known = factors.find(fault.id);
    sum += known == factors.end() ? 1 : known->second;
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

std::vector<schedule::Condition> when_observed(const World& world, const Candidate& c) {
  if (world.plan.workload_ts == 0 || c.first_ts <= world.plan.workload_ts) return {};
  const std::int64_t most = (world.workload_ns > 0 ? world.workload_ns : longest_workload(*world.config)) / 2;
  return {elapsed(std::min(rounded(c.first_ts - world.plan.workload_ts), std::max(kTimeStep, rounded(most))))};
}

std::string context_words(const schedule::Condition& c) {
  if (c.kind == schedule::ConditionKind::function) return c.function;
  return fmt::format("{}({})", c.call.syscall, c.call.path.value_or(c.call.peer.value_or("")));
}

bool can_delay_calls(const Inputs& inputs, std::string_view name) {
  const config::Node* node = inputs.config->find(name);
  return node == nullptr || node->entered_by_rose();
}

bool can_fail_calls(const Inputs& inputs, std::string_view node) {
  return inputs.overrides || can_delay_calls(inputs, node);
}

}  // namespace rose::diagnose
