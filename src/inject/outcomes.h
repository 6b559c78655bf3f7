// Computes the outcomes of a schedule's faults, and of the names in its `order`, during the run or afterwards. The
// sources are the state shared with BPF programs and the records of what was carried out.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "inject/follow.h"
#include "inject/limits.h"
#include "inject/methods.h"
#include "inject/plan.h"
#include "inject/process_stops.h"
#include "inject/programs.h"
#include "inject/stacks.h"
#include "inject/state.h"
#include "inject/time_zero.h"
#include "inject/waits.h"
#include "schedule/outcome.h"

namespace rose::inject {

// Facts about a node that explain outcomes.
struct NodeFacts {
  std::atomic<bool> entered{false};  // a process was admitted through rose exec
  std::atomic<bool> blind{false};    // it has no cgroup of its own, so BPF programs cannot recognise its processes
  bool supervised = false;
};

// The sources must outlive the Outcomes object.
struct OutcomeSources {
  const Plan& plan;
  const State& state;
  const TimeZero& zero;
  const Programs& programs;
  const Follows& follows;
  const Limits& limits;
  const Waits& waits;
  const ProcessStops& process_stops;
  const MethodReports& methods;
  const std::vector<NodeFacts>& nodes;
};

class Outcomes {
 public:
  explicit Outcomes(const OutcomeSources& from) : from_(from) {}

  // One outcome per fault, in the order of the schedule. `stacks`: the stacks resolved so far.
  [[nodiscard]] std::vector<schedule::FaultOutcome> faults(const Stacks::ByFault& stacks) const;
  // One outcome per name in the schedule's `order`. If something came too early, sets `broken` (initially "") to a
  // sentence about it.
  [[nodiscard]] std::vector<schedule::OrderOutcome> order(std::string& broken) const;

 private:
  [[nodiscard]] schedule::FaultOutcome fault(std::size_t chain) const;
  void describe_target(std::size_t chain, const Remarks& remarks, schedule::FaultOutcome& out) const;
  [[nodiscard]] std::vector<schedule::ConditionOutcome> conditions(std::size_t chain, std::uint64_t progress) const;
  [[nodiscard]] std::string no_effect(std::size_t chain) const;
  [[nodiscard]] std::string why_not(std::size_t chain, std::uint64_t progress, bool withdrawn) const;
  [[nodiscard]] std::string missing_condition(std::size_t chain, bool held) const;
  [[nodiscard]] std::string why_unmet(std::size_t chain, std::uint64_t progress) const;
  [[nodiscard]] std::string why_not_reached(std::size_t chain) const;
  [[nodiscard]] bool loses_power(std::size_t chain) const {
    return from_.plan.chains[chain].fault->lose != schedule::Loss::nothing;
  }
  [[nodiscard]] const std::string& name_of(std::size_t chain) const {
    return from_.plan.nodes[from_.state.node_of(chain)];
  }
  [[nodiscard]] std::uint32_t throw_entry(std::size_t chain) const;

  const OutcomeSources from_;
};

}  // namespace rose::inject
