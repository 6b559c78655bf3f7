// Level 1: many failed calls, each of them unlikely to be the cause, in one run. If the run reproduces the bug,
// bisection finds the call that matters.
#include <algorithm>
#include <map>
#include <set>

#include "diagnose/move.h"
#include "evidence/forms.h"

namespace rose::diagnose {
namespace {

class CallGroupMove final : public Move {
 public:
  explicit CallGroupMove(const World& world) : world_(world) {
    for (const Candidate& c : world.plan.candidates) {
      if (c.kind != FaultKind::syscall || !can_fail_calls(*world.inputs, c.node)) continue;
      Fault fault = c.fault;
      fault.when.clear();
      fault.after.clear();
      fault.times = 1;
      Question question{fault.node, {}, call_condition(fault.call)};
      const Answer* answer = world.survey.find(question);
      if (answer != nullptr && answer->times < static_cast<std::uint64_t>(fault.count)) continue;
      // Do not let calls fail during the start, because a node that cannot start prevents the other faults of the group
      // from firing.
      if (comes_at_start(world.survey, fault)) fault.when = {elapsed(kTimeStep)};
      units_.push_back({std::move(fault), c.weight});
    }
    std::stable_sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.weight > b.weight; });
    order_equals(units_, world.config->diagnose.seed,
                 [](const Unit& a, const Unit& b) { return a.weight == b.weight; });
  }

  NextTrial peek() override {
    if (pending_ || group().size() < kLeast) return nullptr;
    Trial t;
    t.schedule.name = world_.config->name;
    double weight = 0;
    for (const std::size_t i : group()) {
      t.schedule.faults.push_back(units_[i].fault);
      if (late_) t.schedule.faults.back().when = {elapsed(kTimeStep)};
      weight += units_[i].weight * factor_of(units_[i]);
    }
    t.yield = kShareCall * weight * works_;
    t.many = true;
    const bool waits = std::any_of(t.schedule.faults.begin(), t.schedule.faults.end(),
                                   [](const Fault& fault) { return !fault.when.empty(); });
    t.why = fmt::format("{} failed calls at once, each of them once{}", t.schedule.faults.size(),
                        waits ? ", not while nodes start" : "");
    return std::make_shared<const Trial>(std::move(t));
  }

  void take() override { pending_ = true; }

  std::unique_ptr<Move> clone() const override { return std::make_unique<CallGroupMove>(*this); }

  void learn(const Trial& tried, const TrialOutcome& run) override {
    pending_ = false;
    const bool unknown = run.result->oracle == schedule::OracleAnswer::unknown;
    // The run was inconclusive and faults fired before the workload, so nodes need some of these calls to start. From
    // now on, arm all faults after the start.
    if (unknown && !late_ && before_workload(tried, *run.result)) {
      late_ = true;
      return;
    }
    bool any = false;
    double tested = 0;
    double all = 0;
    for (const Unit& unit : units_) all += unit.weight;
    for (Unit& unit : units_) {
      if (tried.schedule.find(unit.fault.id) == nullptr) continue;
      const schedule::FaultOutcome* outcome = outcome_of(*run.result, unit.fault.id);
      const bool fired = outcome != nullptr && outcome->fired;
      any = any || fired;
      unit.done = unit.done || fired || ++unit.missed >= 2;
      if (fired && outcome->effective()) tested += unit.weight;
    }
    // The run was inconclusive, or no fault fired, so make the groups smaller.
    if (unknown || !any) most_ = std::max(kLeast, most_ / 2);
    if (run.result->oracle == schedule::OracleAnswer::miss && all > 0) works_ *= 1 - 0.3 * tested / all;
  }

 private:
  static constexpr std::size_t kLeast = 4;  // smallest group; fewer calls are tried alone

  struct Unit {
    Fault fault;
    double weight = 0;
    int missed = 0;  // runs in which it was armed and did not fire
    bool done = false;
  };

  double factor_of(const Unit& unit) const {
    const auto known = world_.factors.find(unit.fault.id);
    return known == world_.factors.end() ? 1 : known->second;
  }

  static bool before_workload(const Trial& tried, const schedule::RunResult& result) {
    return std::any_of(result.faults.begin(), result.faults.end(), [&](const schedule::FaultOutcome& other_outcome) {
      return other_outcome.fired && other_outcome.fired_ns <= 0 && tried.schedule.find(other_outcome.id) != nullptr;
    });
  }

  // Indexes of the next group: the most likely units that are not done.
  std::vector<std::size_t> group() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < units_.size() && found.size() < most_; ++i)
      if (!units_[i].done) found.push_back(i);
    return found;
  }

  const World& world_;
  std::vector<Unit> units_;  // most likely first
  std::size_t most_ = kMostGroup;
  double works_ = kGroupsWork;  // probability that a group with the right call reproduces the bug
  bool pending_ = false;
  bool late_ = false;  // faults are armed only after the workload has begun
};

}  // namespace

std::unique_ptr<Move> call_group_move(const World& world) { return std::make_unique<CallGroupMove>(world); }

}  // namespace rose::diagnose
