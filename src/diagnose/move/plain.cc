// Runs a list of trials, the best first. The outcome of a run removes trials whose faults cannot be reached, and adds
// variants of trials whose faults came too late or that could not be judged.
#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "base/units.h"
#include "diagnose/move.h"
#include "diagnose/simplify.h"
#include "evidence/forms.h"

namespace rose::diagnose {
namespace {

constexpr int kEarlierTrials = 2;  // at most this many further trials of one fault, each at half the previous time

// A key of the fault and all faults and conditions that it waits for. If one of several faults with equal keys cannot
// fire, none of them can.
std::string context_key(const Schedule& schedule, const Fault& fault) {
  Schedule part;
  std::set<std::string> wanted{fault.id};
  for (std::size_t grown = 0; grown != wanted.size();) {
    grown = wanted.size();
    for (const Fault& f : schedule.faults)
      if (wanted.contains(f.id)) wanted.insert(f.after.begin(), f.after.end());
  }
  for (const Fault& f : schedule.faults)
    if (wanted.contains(f.id)) part.faults.push_back(f);
  return schedule::fingerprint(part);
}

class PlainMove final : public Move {
 public:
  PlainMove(const World& world, std::vector<Trial> trials) : world_(world), trials_(std::move(trials)) {}

  NextTrial peek() override {
    const auto best = choose();
    if (best == trials_.end()) return nullptr;
    Trial t = *best;
    t.yield = yield_of(t);
    return std::make_shared<const Trial>(std::move(t));
  }

  void take() override { trials_.erase(choose()); }

  std::vector<NextTrial> peek_all() override {
    (void)choose();
    std::vector<NextTrial> all;
    for (const Trial& attempt : trials_) {
      Trial t = attempt;
      t.yield = yield_of(t);
      all.push_back(std::make_shared<const Trial>(std::move(t)));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const NextTrial& a, const NextTrial& b) { return a->yield > b->yield; });
    if (all.size() > kMostGroup) all.resize(kMostGroup);
    return all;
  }
  bool take_one(const Trial& wanted) override {
    const std::string key = schedule::fingerprint(wanted.schedule);
    const auto found = std::find_if(trials_.begin(), trials_.end(),
                                    [&](const Trial& t) { return schedule::fingerprint(t.schedule) == key; });
    if (found == trials_.end()) return false;
    trials_.erase(found);
    return true;
  }

  std::unique_ptr<Move> clone() const override { return std::make_unique<PlainMove>(*this); }

  void learn(const Trial& tried, const TrialOutcome& run) override {
    if (run.result->oracle == schedule::OracleAnswer::unknown) halve(tried);
    if (run.result->oracle != schedule::OracleAnswer::miss) return;
    remember_unreached(tried.schedule, *run.result);
    arm_earlier(tried, *run.result);
    without_uninjected(tried, *run.result);
  }

 private:
  std::vector<Trial>::iterator choose() {
    if (std::exchange(unreached_changed_, false))
      std::erase_if(trials_, [&](const Trial& t) { return !reachable(t.schedule); });
    return std::max_element(trials_.begin(), trials_.end(),
                            [&](const Trial& a, const Trial& b) { return yield_of(a) < yield_of(b); });
  }

  double yield_of(const Trial& t) const {
    const bool missed_in_group =
        t.schedule.faults.size() == 1 && world_.missed_in_group.contains(t.schedule.faults[0].id);
    return t.yield * world_.average_factor(t.schedule) * (missed_in_group ? kAfterGroupMiss : 1);
  }

  // Proposes the same schedule at half the time if its faults came too late: on a machine that is faster than
  // production, the call is made before the observed time. Does so only for likely candidates, for which this is worth
  // a run.
  void arm_earlier(const Trial& tried, const schedule::RunResult& result) {
    const std::vector<Fault>& faults = tried.schedule.faults;
    double worth = 0;
    for (const Fault& fault : faults) {
      if (fault.when != faults[0].when || !fault.after.empty() || !came_too_late(fault, result)) return;
      const Candidate* c = world_.candidate(fault.id);
      if (c != nullptr && !c->symptom && c->ordinariness <= 1) worth = std::max(worth, c->weight);
      if (fault.kind == FaultKind::disk_full) worth = std::max(worth, tried.yield);
    }
    if (faults.empty() || worth <= 0 || earlier_[faults[0].id] >= kEarlierTrials) return;
    ++earlier_[faults[0].id];
    Trial earlier = tried;
    for (Fault& fault : earlier.schedule.faults) fault.when = after_ns(fault.when[0].elapsed_ns / 2);
    earlier.why = fmt::format("armed earlier, because the call was not reached any more: {}", tried.why);
    earlier.yield = std::max(tried.yield, kShareCallShape * worth) * kEarlierYield;
    trials_.push_back(std::move(earlier));
  }
  // True if the fault was armed at a fixed time, and afterwards either no call matched it, or it had no effect because
  // nothing used the resource that it limits or sent packets that it drops.
  static bool came_too_late(const Fault& fault, const schedule::RunResult& result) {
    if (fault.when.size() != 1 || fault.when[0].kind != schedule::ConditionKind::elapsed ||
        fault.when[0].elapsed_ns < kSecond)
      return false;
    const schedule::FaultOutcome* outcome = outcome_of(result, fault.id);
    if (outcome == nullptr) return false;
    if (fault.kind == FaultKind::syscall) return !outcome->fired;
    if (outcome->fired && !outcome->effective()) return true;
    if (fault.kind != FaultKind::disk_full || !outcome->fired || result.trace.events.empty()) return false;
    return std::none_of(result.trace.events.begin(), result.trace.events.end(), [](const trace::Event& event) {
      return event.type == trace::EventType::scf && event.err == ENOSPC;
    });
  }

  // A run with many faults was inconclusive: proposes each half of the faults.
  void halve(const Trial& tried) {
    const std::vector<Fault>& faults = tried.schedule.faults;
    if (!tried.many || faults.size() <= kFewTogether) return;
    for (const bool first : {true, false}) {
      Trial t = tried;
      for (std::size_t i = 0; i < faults.size(); ++i)
        if ((i < faults.size() / 2) != first) t.schedule = without(t.schedule, faults[i].id);
      t.yield = tried.yield / 2;
      t.why = fmt::format("{}, half of them, because the run with all could not be judged", tried.why);
      trials_.push_back(std::move(t));
    }
  }

  // If some of many faults did not fire, the faults that wait for them could not fire either. Proposes the schedule
  // without the former, so that the latter may fire.
  void without_uninjected(const Trial& tried, const schedule::RunResult& result) {
    Schedule rest = tried.schedule;
    for (const Fault& fault : tried.schedule.faults)
      if (const schedule::FaultOutcome* o = outcome_of(result, fault.id);
          o != nullptr && !o->fired && !waited_in_vain(fault, result))
        rest = without(rest, fault.id);
    if (rest.faults.empty() || rest.faults.size() == tried.schedule.faults.size() ||
        tried.schedule.faults.size() <= kFewTogether)
      return;
    Trial t = tried;
    t.schedule = std::move(rest);
    t.yield = tried.yield * 0.8;
    t.why = fmt::format("{}, without the fault that could not be injected", tried.why);
    trials_.push_back(std::move(t));
  }

  // True if a fault that this one waits for did not fire.
  static bool waited_in_vain(const Fault& fault, const schedule::RunResult& result) {
    return std::any_of(fault.after.begin(), fault.after.end(), [&](const std::string& id) {
      const schedule::FaultOutcome* before = outcome_of(result, id);
      return before == nullptr || !before->fired;
    });
  }

  void remember_unreached(const Schedule& schedule, const schedule::RunResult& result) {
    for (const Fault& fault : schedule.faults) {
      const schedule::FaultOutcome* o = outcome_of(result, fault.id);
      if (o == nullptr || o->fired || o->withdrawn) continue;
      // A fault counts as unreachable only if all faults that it waits for fired; otherwise it could not fire anyway.
      if (waited_in_vain(fault, result)) continue;
      unreached_.insert(context_key(schedule, fault));
      unreached_changed_ = true;
      if (fault.kind == FaultKind::syscall && fault.when.empty() && fault.after.empty() && o->seen == 0)
        never_called_.insert(call_key(fault));
    }
  }

  // Identifies the calls that a fault matches. Calls that are never made cannot fail under additional conditions
  // either, except after another fault, which may cause them.
  static std::string call_key(const Fault& fault) {
    return fmt::format("{}\n{}\n{}\n{}", fault.node, fault.call.syscall, fault.call.path.value_or("\t"),
                       fault.call.peer.value_or("\t"));
  }

  bool reachable(const Schedule& schedule) const {
    if (unreached_.empty() && never_called_.empty()) return true;
    return std::none_of(schedule.faults.begin(), schedule.faults.end(), [&](const Fault& fault) {
      return (fault.kind == FaultKind::syscall && fault.after.empty() && never_called_.contains(call_key(fault))) ||
             unreached_.contains(context_key(schedule, fault));
    });
  }

  const World& world_;
  std::vector<Trial> trials_;
  std::set<std::string> unreached_;
  std::set<std::string> never_called_;
  bool unreached_changed_ = false;
  std::map<std::string, int> earlier_;  // by fault id: how often an earlier time was proposed
};

}  // namespace

std::unique_ptr<Move> plain_move(const World& world, std::vector<Trial> trials) {
  return std::make_unique<PlainMove>(world, std::move(trials));
}

}  // namespace rose::diagnose
