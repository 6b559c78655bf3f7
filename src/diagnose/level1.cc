#include "diagnose/level1.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/extract.h"
#include "diagnose/signs.h"
#include "diagnose/surprise.h"
#include "base/units.h"

namespace rose::diagnose {
namespace {

using schedule::Condition;
using schedule::Fault;
using schedule::FaultKind;
using schedule::Schedule;

constexpr std::int64_t kOneRootCause = 10 * kSecond;  // failures of a full disk begin within this
constexpr std::size_t kMostTogether = 20;   // faults of one schedule
constexpr std::size_t kMostAlone = 6;       // faults also tried alone, and in growing prefixes
constexpr std::size_t kBreadth = 10;        // calls whose first shape is tried before any second shape
constexpr std::size_t kMostWider = 4;       // cuts that are also tried wider, among the other faults
constexpr std::size_t kMostMixed = 3;       // calls also tried together with the other faults
constexpr std::size_t kMostPaired = 4;      // calls also tried two by two
constexpr std::size_t kMostEpisodes = 4;
constexpr int kEarlierRanks = 3;            // calls of these ranks are armed earlier when they were missed
constexpr int kEarlierTries = 2;            // each time half as late

bool call(const Candidate& c) { return c.kind == FaultKind::syscall; }

// Since the workload began, or since the faults in `after` began.
std::vector<Condition> after_ns(std::int64_t ns) {
  ns = (ns + kStep / 2) / kStep * kStep;
  if (ns <= 0) return {};
  Condition condition;
  condition.elapsed_ns = ns;
  return {condition};
}

class Builder {
 public:
  Builder(const Plan& plan, const config::Config& config, std::int64_t workload_ns) : plan_(plan), config_(config) {
    const std::int64_t most = config.workload ? config.workload->timeout_ns : 60 * kSecond;
    span_ = workload_ns > 0 ? std::min(workload_ns, most) : std::min(most, std::max(kSecond, plan.end_ts - plan.begin_ts));
    limit_ = most;
    first_limit_ = workload_ns > 0 ? span_ : most;
  }

  std::vector<Proposal> build() {
    std::vector<const Candidate*> timed;   // process and network faults, by time
    std::vector<const Candidate*> calls;   // by rank
    std::vector<const Candidate*> symptoms;
    for (const Candidate& c : plan_.candidates) (c.symptom ? symptoms : call(c) ? calls : timed).push_back(&c);
    std::stable_sort(timed.begin(), timed.end(), [](const Candidate* a, const Candidate* b) { return a->first_ts < b->first_ts; });
    // Of too many the last: what came right before the failure is likelier to have caused it.
    if (timed.size() > kMostTogether) timed.erase(timed.begin(), timed.end() - static_cast<std::ptrdiff_t>(kMostTogether));
    const bool call_first = !plan_.candidates.empty() && call(plan_.candidates[0]) && !timed.empty();

    if (call_first) {
      root_causes(calls, calls.front());
      single_call(*calls.front(), 0);
    }
    episodes(timed);
    all_of(timed);
    alone_and_parts(timed);
    wider(timed);
    shapes_of(timed);
    if (!call_first) root_causes(calls, nullptr);
    // Breadth first among the surprising ones; usual noise waits until they were tried in all shapes.
    std::size_t breadth = 0;
    while (breadth < std::min(calls.size(), kBreadth) && calls[breadth]->ordinariness < 3 && !calls[breadth]->profiled) ++breadth;
    by_shape(calls, 0, breadth);
    for (std::size_t i = 0; !timed.empty() && i < std::min(calls.size(), kMostMixed); ++i) mixed(*calls[i], timed);
    if (breadth > 1) together({calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(breadth)});
    if (call_first) root_causes(calls, nullptr);
    by_shape(calls, breadth, calls.size());
    for (const Candidate* c : symptoms) {
      if (full()) break;
      if (call(*c))
        single_call(*c, 0);
      else
        propose(sequence({c}, points().front()), fmt::format("looks like a consequence, but nothing else was left: {}", c->why));
    }
    return std::move(proposals_);
  }

 private:
  bool full() const { return proposals_.size() >= static_cast<std::size_t>(std::max(1, config_.diagnose.max_runs)); }

  void propose(std::vector<Fault> faults, std::string why) {
    if (faults.empty() || full() || std::any_of(faults.begin(), faults.end(), [&](const Fault& f) { return impossible(f); })) return;
    Schedule schedule;
    schedule.name = config_.name;
    schedule.faults = std::move(faults);
    if (!seen_.insert(schedule::fingerprint(schedule)).second) return;
    proposals_.push_back({std::move(schedule), std::move(why), false});
  }

  // Calls can be failed only in processes that rose has started.
  bool impossible(const Fault& fault) const {
    const config::Node* node = config_.find(fault.node);
    return fault.kind == FaultKind::syscall && node != nullptr && node->attach.has_value();
  }

  // All of them, with one cut as wide as it may have been: only pairs that talk fall silent.
  void wider(const std::vector<const Candidate*>& timed) {
    if (timed.size() < 2) return;
    std::size_t tried = 0;
    for (std::size_t i = 0; i < timed.size(); ++i)
      for (const Fault& shape : timed[i]->alternatives) {
        if (shape.kind != FaultKind::partition || !shape.peers.empty()) continue;
        if (++tried > kMostWider) return;
        Candidate cut = *timed[i];
        cut.fault = shape;
        std::vector<const Candidate*> list = timed;
        list[i] = &cut;
        propose(sequence(list, starts(*timed.front()).front()),
                fmt::format("all process and network faults, {} cut off from all others", shape.node));
      }
  }

  // When the first fault comes, after the workload's beginning; several when the dump can't say.
  std::vector<std::int64_t> points() const {
    return {kSecond / 2, rounded(span_ / 4), rounded(span_ / 2)};
  }

  // A silence or pause longer than the whole workload would only measure its time limit.
  Fault fitted(Fault fault) const {
    if (fault.duration_ns > limit_) fault.duration_ns = rounded(limit_ / 2);
    return fault;
  }

  // The faults one after the other; the first `first_ns` after the workload began, the others with
  // their observed spacing, squeezed when that is longer than the workload.
  std::vector<Fault> sequence(const std::vector<const Candidate*>& list, std::int64_t first_ns) const {
    return sequence(list, first_ns, limit_);
  }
  std::vector<Fault> sequence(const std::vector<const Candidate*>& list, std::int64_t first_ns, std::int64_t most_ns) const {
    std::vector<Fault> faults;
    if (list.empty()) return faults;
    const std::int64_t length = list.back()->first_ts - list.front()->first_ts;
    // What does not fit at all is made to fit the workload as it is without faults.
    const std::int64_t most = first_ns + length > limit_ ? std::min(limit_, first_limit_) : most_ns;
    const std::int64_t room = std::max(kSecond, most * 8 / 10 - first_ns);
    const double squeeze = first_ns + length > most && length > 0 ? static_cast<double>(room) / static_cast<double>(length) : 1.0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Fault fault = fitted(list[i]->fault);
      fault.after.clear();
      if (i == 0) {
        fault.when = after_ns(first_ns);
      } else {
        fault.after = {faults.back().id};
        fault.when = after_ns(static_cast<std::int64_t>(static_cast<double>(list[i]->first_ts - list[i - 1]->first_ts) * squeeze));
      }
      faults.push_back(std::move(fault));
    }
    return faults;
  }

  std::int64_t observed(const Candidate& c) const {
    const std::int64_t since = std::max<std::int64_t>(0, c.first_ts - plan_.workload_ts);
    // Production runs for days, the test's workload does not. (Later faults may well come after the
    // length of a fault-free run: the first ones hold the workload up.)
    return since > first_limit_ ? rounded(first_limit_ / 2) : since;
  }
  std::vector<std::int64_t> starts(const Candidate& first) const {
    if (plan_.workload_ts != 0) return {observed(first)};
    return points();
  }

  void all_of(const std::vector<const Candidate*>& timed) {
    if (timed.empty()) return;
    const char* what = timed.size() == 1 ? "the only process or network fault" : "all process and network faults, in their order";
    for (const std::int64_t start : starts(*timed.front()))
      propose(sequence(timed, start),
              plan_.workload_ts != 0 ? fmt::format("{}, at the time it was seen", what)
                                     : fmt::format("{}; the dump does not say when the workload began", what));
    // The later ones may come after the workload's end, if the first ones do not hold it up.
    propose(sequence(timed, starts(*timed.front()).front(), first_limit_),
            fmt::format("{}, closer together than they were: the workload is shorter here", what));
  }

  // Faults further apart than a whole workload takes have little to do with each other: those of one time
  // together, the last ones first.
  void episodes(const std::vector<const Candidate*>& timed) {
    std::vector<std::vector<const Candidate*>> found;
    for (const Candidate* c : timed) {
      if (found.empty() || c->first_ts - found.back().back()->first_ts > limit_) found.emplace_back();
      found.back().push_back(c);
    }
    if (found.size() < 2) return;
    std::size_t tried = 0;
    for (auto it = found.rbegin(); it != found.rend() && tried < kMostEpisodes; ++it, ++tried)
      propose(sequence(*it, starts(*it->front()).front()),
              it->size() == 1 ? fmt::format("alone, long after the faults before it: {}", it->front()->why)
                              : fmt::format("the {} process and network faults of one time, long apart from the others", it->size()));
  }

  // Each alone, then growing parts: from the first on, and, of many, up to the last.
  void alone_and_parts(const std::vector<const Candidate*>& timed) {
    if (timed.size() < 2) return;
    std::vector<const Candidate*> alone = timed;
    if (alone.size() > kMostAlone)
      alone.erase(alone.begin() + kMostAlone / 2, alone.end() - static_cast<std::ptrdiff_t>(kMostAlone / 2));
    for (const Candidate* c : alone) propose(sequence({c}, starts(*c).front()), fmt::format("alone: {}", c->why));
    for (std::size_t n = 2; n < std::min(timed.size(), kMostAlone + 1); ++n) {
      propose(sequence({timed.begin(), timed.begin() + static_cast<std::ptrdiff_t>(n)}, starts(*timed.front()).front()),
              fmt::format("the first {} process and network faults", n));
      const std::vector<const Candidate*> last(timed.end() - static_cast<std::ptrdiff_t>(n), timed.end());
      if (n <= kMostAlone / 2)
        propose(sequence(last, starts(*last.front()).front()), fmt::format("the last {} process and network faults", n));
    }
  }

  // Failures that are no bug one by one may be one together.
  void together(std::vector<const Candidate*> calls) {
    const auto faults_of = [](const std::vector<const Candidate*>& list) {
      std::vector<Fault> faults;
      for (const Candidate* c : list) faults.push_back(c->fault);
      return faults;
    };
    if (calls.size() > 2) propose(faults_of(calls), fmt::format("the {} most surprising failed calls together", calls.size()));
    if (calls.size() > kMostPaired) calls.resize(kMostPaired);
    for (std::size_t later = 1; later < calls.size(); ++later)
      for (std::size_t i = 0; i < later; ++i)
        propose(faults_of({calls[i], calls[later]}), "two failed calls together");
  }

  void shapes_of(const std::vector<const Candidate*>& timed) {
    std::size_t tried = 0;
    for (const Candidate* c : timed)
      for (const Fault& shape : c->alternatives) {
        if (++tried > kMostAlone) return;
        Candidate other = *c;
        other.fault = shape;
        propose(sequence({&other}, starts(*c).front()), fmt::format("another shape of: {}", c->why));
      }
  }

  void single_call(const Candidate& c, std::size_t shape) {
    if (shape > c.alternatives.size()) return;
    const Fault& fault = shape == 0 ? c.fault : c.alternatives[shape - 1];
    const char* what = shape == 0 ? "a failed call" : "another shape of a failed call";
    propose({fault}, fmt::format("{}{}: {}", what, c.symptom ? ", which looks like a consequence" : "", c.why));
  }

  void by_shape(const std::vector<const Candidate*>& calls, std::size_t from, std::size_t to) {
    std::size_t most = 0;
    for (std::size_t i = from; i < to; ++i) most = std::max(most, calls[i]->alternatives.size());
    for (std::size_t shape = 0; shape <= most && !full(); ++shape)
      for (std::size_t i = from; i < to && !full(); ++i) single_call(*calls[i], shape);
  }

  // Different calls of a node that begin to fail with one resource error at one time have one cause:
  // a full disk fails opens, writes and syncs alike.
  void root_causes(const std::vector<const Candidate*>& calls, const Candidate* with) {
    std::vector<const Candidate*> left;
    for (const Candidate* c : calls)
      if (strict_resource_error(c->fault.error) && !c->profiled) left.push_back(c);
    const auto together = [](const Candidate& c, const Candidate& head) {
      return c.node == head.node && c.fault.error == head.fault.error &&
             std::abs(c.first_ts - head.first_ts) <= kOneRootCause;
    };
    while (!left.empty() && !full()) {
      const Candidate* head = left.front();
      std::vector<const Candidate*> set;
      for (const Candidate* c : left)
        if (together(*c, *head)) set.push_back(c);
      left.erase(std::remove_if(left.begin(), left.end(), [&](const Candidate* c) { return together(*c, *head); }), left.end());
      if (set.size() < 2) continue;
      if (set.size() > kMostTogether) set.resize(kMostTogether);
      if (with != nullptr && std::find(set.begin(), set.end(), with) == set.end()) continue;
      std::stable_sort(set.begin(), set.end(), [](const Candidate* a, const Candidate* b) { return a->first_ts < b->first_ts; });
      // All from the moment the first one failed on, when that is known to lie within the workload.
      const std::int64_t since = plan_.workload_ts != 0 ? observed(*set.front()) : kSecond / 2;
      std::vector<Fault> faults;
      for (const Candidate* c : set) {
        Fault fault = c->fault;
        fault.when.clear();
        if (since >= kSecond / 2) {
          fault.when = after_ns(since / kStep * kStep);
        }
        faults.push_back(std::move(fault));
      }
      propose(std::move(faults), fmt::format("{} calls of {} fail with {} from the same time on: one cause", set.size(),
                                             head->node, head->error));
    }
  }

  // A failed call among the process and network faults, in the order of the dump.
  void mixed(const Candidate& c, const std::vector<const Candidate*>& timed) {
    std::vector<Fault> faults = sequence(timed, starts(*timed.front()).front());
    Fault fault = c.fault;
    fault.when.clear();
    fault.after.clear();
    std::size_t before = 0;  // process and network faults that came earlier
    while (before < timed.size() && timed[before]->first_ts <= c.first_ts) ++before;
    if (before > 0) {
      fault.after = {faults[before - 1].id};
    } else {
      fault.when = c.fault.when;
      faults.front().after = {fault.id};
      faults.front().when = after_ns(std::min(timed.front()->first_ts - c.first_ts, first_limit_ / 4));
    }
    faults.insert(faults.begin() + static_cast<std::ptrdiff_t>(before), std::move(fault));
    propose(std::move(faults), "the process and network faults together with a failed call");
  }

  const Plan& plan_;
  const config::Config& config_;
  std::int64_t span_ = 0;         // the workload's length as far as it is known
  std::int64_t limit_ = 0;        // it surely does not last longer
  std::int64_t first_limit_ = 0;  // nor does it without faults
  std::vector<Proposal> proposals_;
  std::set<std::string> seen_;
};

// The fault with everything it waits for: equal keys fire, or do not fire, alike.
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

class Level1 final : public Proposer {
 public:
  explicit Level1(const SearchContext& context) : plan_(*context.plan), promising_(plan_) {
    for (std::size_t i = 0; i < plan_.schedules.size(); ++i)
      first_.push_back({plan_.schedules[i], i < plan_.schedule_whys.size() ? plan_.schedule_whys[i] : std::string{}, false});
  }

  std::optional<Proposal> next() override {
    while (at_ < first_.size()) {
      const Proposal& proposal = first_[at_++];
      if (reachable(proposal.schedule)) return proposal;
    }
    if (!planned_second_) second_ = promising_.take(kMostSecondTries);
    planned_second_ = true;
    if (again_ < second_.size()) return second_[again_++];
    return std::nullopt;
  }

  // Second tries are chosen by what all first ones showed.
  bool goes_on() const override { return at_ < first_.size() || planned_second_; }

  void learn(const Proposal& proposal, const schedule::RunResult& result) override {
    if (result.oracle == schedule::OracleAnswer::miss) {
      remember_unreached(proposal.schedule, result);
      arm_earlier(proposal, result);
    }
    if (proposal.again || result.verdict != schedule::Verdict::not_reproduced) return;
    const int score = promising_.score(result.trace);
    const bool of_best = !plan_.candidates.empty() && proposal.schedule.find(plan_.candidates[0].fault.id) != nullptr;
    if (score > 0 || of_best) promising_.add(proposal, score);
  }

 private:
  // A test machine faster than production makes the call before the moment at which it failed there. What the
  // dump says most about is worth being there in time.
  void arm_earlier(const Proposal& proposal, const schedule::RunResult& result) {
    if (proposal.schedule.faults.size() != 1) return;
    const Fault& fault = proposal.schedule.faults[0];
    if (fault.kind != FaultKind::syscall || fault.when.size() != 1 || fault.when[0].kind != schedule::ConditionKind::elapsed) return;
    const schedule::FaultOutcome* outcome = outcome_of(result, fault.id);
    if (outcome == nullptr || outcome->fired) return;
    const bool telling = std::any_of(plan_.candidates.begin(), plan_.candidates.end(), [&](const Candidate& c) {
      return c.fault.id == fault.id && c.rank <= kEarlierRanks && !c.symptom && c.ordinariness <= 1;
    });
    if (!telling || earlier_[fault.id] >= kEarlierTries || fault.when[0].elapsed_ns < kSecond) return;
    ++earlier_[fault.id];
    Proposal earlier = proposal;
    earlier.schedule.faults[0].when = after_ns(fault.when[0].elapsed_ns / 2);
    earlier.why = fmt::format("armed earlier, as the call did not come any more: {}", proposal.why);
    first_.insert(first_.begin() + static_cast<std::ptrdiff_t>(at_), std::move(earlier));
  }

  void remember_unreached(const Schedule& schedule, const schedule::RunResult& result) {
    for (const Fault& fault : schedule.faults) {
      const schedule::FaultOutcome* o = outcome_of(result, fault.id);
      if (o == nullptr || o->fired || o->withdrawn) continue;
      // Blame the first of a chain: what waits for it could not fire anyway.
      const bool waited = std::any_of(fault.after.begin(), fault.after.end(), [&](const std::string& id) {
        const schedule::FaultOutcome* before = outcome_of(result, id);
        return before == nullptr || !before->fired;
      });
      if (waited) continue;
      unreached_.insert(context_key(schedule, fault));
      if (fault.kind == FaultKind::syscall && fault.when.empty() && fault.after.empty() && o->seen == 0)
        never_called_.insert(call_key(fault));
    }
  }

  // A call that was never made can't fail under stricter conditions either (but it may be made because of another fault).
  static std::string call_key(const Fault& fault) {
    return fmt::format("{}\n{}\n{}\n{}", fault.node, fault.call.syscall, fault.call.path.value_or("\t"), fault.call.peer.value_or("\t"));
  }

  bool reachable(const Schedule& schedule) const {
    std::size_t lost = 0;
    for (const Fault& fault : schedule.faults) {
      const bool unreached = unreached_.contains(context_key(schedule, fault)) ||
                             (fault.kind == FaultKind::syscall && fault.after.empty() && never_called_.contains(call_key(fault)));
      lost += unreached ? 1 : 0;
    }
    return lost == 0;
  }

  const Plan& plan_;
  Promising promising_;
  std::vector<Proposal> first_;
  std::vector<Proposal> second_;
  std::set<std::string> unreached_;
  std::set<std::string> never_called_;
  std::map<std::string, int> earlier_;  // fault id -> how often it was armed earlier
  std::size_t at_ = 0;
  std::size_t again_ = 0;
  bool planned_second_ = false;
};

}  // namespace

std::vector<Proposal> level1_schedules(const Plan& plan, const config::Config& config, std::int64_t workload_ns) {
  return Builder(plan, config, workload_ns).build();
}

std::unique_ptr<Proposer> make_level1(const SearchContext& context) { return std::make_unique<Level1>(context); }

}  // namespace rose::diagnose
