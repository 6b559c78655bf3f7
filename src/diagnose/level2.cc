#include "diagnose/level2.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "diagnose/context.h"
#include "diagnose/signs.h"

namespace rose::diagnose {
namespace {

using schedule::Condition;
using schedule::ConditionKind;
using schedule::Fault;
using schedule::FaultKind;
using schedule::FaultOutcome;
using schedule::OracleAnswer;
using schedule::RunResult;
using schedule::Schedule;

constexpr std::size_t kMostCalls = 8;       // failing calls whose nth occurrence is looked for
constexpr int kCallsATurn = 8;                    // attempts at one call before the next one has its turn
constexpr std::size_t kMostContext = 10;    // conditions of one fault
constexpr std::size_t kMostEvents = 64;     // looked at before one fault
constexpr int kMostUnseen = 2;              // events skipped because no node shows them in the test deployment
constexpr std::size_t kMostFaults = 8;      // process and network faults that are given a context
constexpr std::int64_t kTraceSlack = 2'000'000;   // between the clocks of the injector and of the tracer
constexpr int kMostLookedAt = 20'000;       // events of a run's trace, to compare its order

std::string ordinal(std::uint64_t n) {
  const std::uint64_t ten = n % 100;
  const char* end = ten >= 11 && ten <= 13 ? "th" : n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
  return fmt::format("{}{}", n, end);
}

std::string context_words(const Condition& c) {
  if (c.kind == ConditionKind::function) return c.function;
  const std::string object = c.call.path.value_or(c.call.peer.value_or(""));
  return fmt::format("{}({})", c.call.syscall, object);
}

// One fault whose context is looked for. Its next proposal may depend on all runs before.
class Branch {
 public:
  virtual ~Branch() = default;
  [[nodiscard]] virtual std::optional<Proposal> next() = 0;
  virtual void learn(const Proposal& proposal, const RunResult& result) = 0;
  [[nodiscard]] virtual int turn() const = 0;  // proposals until others have theirs
  // Is there a next proposal, whatever the last one's run shows?
  [[nodiscard]] virtual bool goes_on() const { return false; }
};

// --- the nth call

class CountBranch final : public Branch {
 public:
  CountBranch(std::string name, Fault fault, std::uint64_t most, std::string why)
      : name_(std::move(name)), fault_(std::move(fault)), most_(most), why_(std::move(why)) {}

  std::optional<Proposal> next() override {
    if (asked_) ++n_;  // also when the loop knew the schedule already: level 1 tried it
    asked_ = true;
    if (ended_ || n_ > most_) return std::nullopt;
    Fault fault = fault_;
    fault.count = static_cast<int>(n_);
    Proposal proposal;
    proposal.schedule.name = name_;
    proposal.schedule.faults.push_back(std::move(fault));
    proposal.why = fmt::format("the {} matching call: {}", ordinal(n_), why_);
    return proposal;
  }

  void learn(const Proposal& proposal, const RunResult& result) override {
    if (proposal.again) return;
    const FaultOutcome* outcome = outcome_of(result, fault_.id);
    if (outcome != nullptr && outcome->fired) {
      unjudged_ = 0;
      return;
    }
    // Fewer calls exist: there is no later one either. A run that failed for reasons of its own says less.
    if (result.oracle != OracleAnswer::unknown || ++unjudged_ > 1) ended_ = true;
  }

  int turn() const override { return kCallsATurn; }
  bool goes_on() const override { return !ended_ && n_ < most_; }

 private:
  const std::string name_;
  const Fault fault_;
  const std::uint64_t most_;
  const std::string why_;
  std::uint64_t n_ = 1;
  int unjudged_ = 0;
  bool asked_ = false;
  bool ended_ = false;
};

// --- algorithm 1

class ContextBranch final : public Branch {
 public:
  ContextBranch(Schedule base, std::size_t fault, std::vector<ContextEvent> events, std::vector<std::string> others, std::string why,
                std::vector<ReachedContext>* contexts)
      : base_(std::move(base)), fault_(fault), events_(std::move(events)), others_(std::move(others)), why_(std::move(why)),
        contexts_(contexts) {}

  std::optional<Proposal> next() override {
    if (asked_) advance();  // the loop knew the schedule: go on as after a plain miss
    if (!hit_.empty()) spread(std::move(hit_));  // it showed the bug, too rarely: the next run may have given the role to another node
    hit_.clear();
    if (step_ != Step::spread && (ended_ || at_ >= events_.size())) return std::nullopt;
    asked_ = true;
    const bool amplified = amplified_ || step_ == Step::amplify || step_ == Step::spread;
    Proposal proposal;
    proposal.schedule = base_;
    proposal.schedule.faults[fault_].when = conditions();
    std::string list;
    for (const Condition& condition : proposal.schedule.faults[fault_].when)
      list += fmt::format("{}{}", list.empty() ? "" : ", then ", context_words(condition));
    const std::string count = step_ == Step::count ? fmt::format(", {} time", ordinal(events_[at_].occurrence)) : "";
    proposal.why = fmt::format("{} after {}{}{}", base_.faults[fault_].id, list, count,
                               amplified ? ", on whichever node does that first" : "");
    if (amplified) proposal.schedule = amplify(std::move(proposal.schedule), fault_);
    if (!why_.empty()) proposal.why += fmt::format(" ({})", why_);
    return proposal;
  }

  void learn(const Proposal& proposal, const RunResult& result) override {
    if (proposal.again) return;
    asked_ = false;
    const Fault* fired = winner(proposal.schedule, result);
    const bool in_order = fired != nullptr && order_kept(*fired, result);
    if (fired != nullptr && contexts_ != nullptr)
      contexts_->push_back({proposal.schedule, fired->id, 0, in_order, moment(*fired, result)});
    if (fired != nullptr && result.verdict == schedule::Verdict::reproduced && !amplified_ && step_ != Step::amplify &&
        step_ != Step::spread && !others_.empty())
      hit_ = proposal.schedule.faults[fault_].when;
    switch (step_) {
      case Step::extend:
        if (fired != nullptr) {
          reached(in_order);
        } else if (!amplified_ && !others_.empty() && newest_unmet(result)) {
          step_ = Step::amplify;
        } else if (!amplified_ && !others_.empty() && role_elsewhere(result)) {
          std::vector<Condition> reached_before;
          for (auto it = context_.rbegin(); it != context_.rend(); ++it) reached_before.push_back(events_[*it].condition);
          spread(std::move(reached_before));
        } else {
          unreached();
        }
        return;
      case Step::spread:
        amplified_ = fired != nullptr;
        step_ = resume_;
        if (fired == nullptr) ended_ = true;
        return;
      case Step::amplify:
        if (fired != nullptr) {
          amplified_ = true;
          reached(in_order);
        } else {
          step_ = Step::extend;  // reverted: no node shows it
          unreached();
        }
        return;
      case Step::count:
        if (fired == nullptr && !amplified_ && !others_.empty() && role_elsewhere(result))
          spread(proposal.schedule.faults[fault_].when);
        else if (out_of_order_ && !in_order)
          ended_ = true;  // neither the first time nor that one
        else
          further();
        return;
    }
  }

  int turn() const override { return 1'000'000; }

 private:
  enum class Step { extend, amplify, count, spread };

  // What was reached on this node is tried on every node, then the context goes on from there.
  void spread(std::vector<Condition> when) {
    spread_ = std::move(when);
    resume_ = step_;
    step_ = Step::spread;
  }

  // Earliest first; the newest of the context is the earliest.
  std::vector<Condition> conditions() const {
    if (step_ == Step::spread) return spread_;
    std::vector<Condition> list;
    if (step_ != Step::count) list.push_back(events_[at_].condition);
    for (auto it = context_.rbegin(); it != context_.rend(); ++it) list.push_back(events_[*it].condition);
    if (step_ == Step::count) list.front().count = static_cast<int>(std::min<std::uint64_t>(events_[at_].occurrence, 1'000'000));
    return list;
  }

  const Fault* winner(const Schedule& schedule, const RunResult& result) const {
    const Fault& mine = base_.faults[fault_];
    for (const Fault& fault : schedule.faults) {
      if (fault.id != mine.id && (fault.group.empty() || fault.group != group_of(mine.id))) continue;
      const FaultOutcome* outcome = outcome_of(result, fault.id);
      if (outcome != nullptr && outcome->fired) return &fault;
    }
    return nullptr;
  }

  // Another condition of the chain failed: the node is the right one, the order is not.
  bool newest_unmet(const RunResult& result) const {
    const FaultOutcome* outcome = outcome_of(result, base_.faults[fault_].id);
    return outcome == nullptr || outcome->conditions.empty() || !outcome->conditions.front().met;
  }

  // What the node did in earlier runs it did not do at all in this one: it has the role in some runs only.
  bool role_elsewhere(const RunResult& result) const {
    if (context_.empty() || result.trace.events.empty()) return false;
    const std::string& home = base_.faults[fault_].node;
    return std::none_of(result.trace.events.begin(), result.trace.events.end(), [&](const trace::Event& event) {
      return of_node(result.trace, event, home) && meets(result.trace, event, events_[context_.front()].condition);
    });
  }

  // When it fired, by the clock of the run's trace; 0 unknown.
  static std::int64_t fired_at(const Fault& fired, const RunResult& result) {
    const FaultOutcome* outcome = outcome_of(result, fired.id);
    if (outcome != nullptr && outcome->fired_ns != 0 && result.trace.meta.workload_ts != 0)
      return result.trace.meta.workload_ts + outcome->fired_ns + kTraceSlack;
    for (const trace::Event& event : result.trace.events)
      if (event.type == trace::EventType::ps && (event.flags & trace::kInjected) != 0 && result.trace.str(event.node) == fired.node)
        return event.ts_ns;
    return 0;
  }

  // The paper's processTrace: the last functions before the fault are those of production. What production did not do
  // before the fault is not counted against a run: much of it is this run's timing.
  bool order_kept(const Fault& fired, const RunResult& result) const {
    const trace::Trace& trace = result.trace;
    const std::int64_t until = fired_at(fired, result);
    if (until == 0) return true;  // the conditions were met in order; nothing else is known
    std::set<std::string> wanted;
    if (step_ != Step::spread) wanted.insert(events_[at_].key);
    for (const std::size_t i : context_) wanted.insert(events_[i].key);
    std::map<std::string, const Condition*> known;
    for (const ContextEvent& event : events_) known.emplace(event.key, &event.condition);
    // What made it fire came last, whether the tracer could still note it or not.
    std::set<std::string> last{events_[context_.empty() ? at_ : context_.front()].key};
    bool any = false;
    int looked_at = 0;
    for (auto it = trace.events.rbegin(); it != trace.events.rend() && last.size() < wanted.size(); ++it) {
      if (it->ts_ns > until || !of_node(trace, *it, fired.node)) continue;
      if (++looked_at > kMostLookedAt) break;
      for (const auto& [key, condition] : known)
        if (meets(trace, *it, *condition)) {
          last.insert(key);
          any = any || wanted.contains(key);
          break;
        }
    }
    // A run that traces none of them (no functions of that node are traced) proves nothing.
    return !any || last == wanted || looked_at > kMostLookedAt;
  }

  static bool of_node(const trace::Trace& trace, const trace::Event& event, std::string_view node) {
    if (event.type != trace::EventType::af && event.type != trace::EventType::sys) return false;
    return (event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node)) == node;
  }

  // Which of the node's doings of that kind it came at: contexts of different length may mean the same one.
  std::string moment(const Fault& fired, const RunResult& result) const {
    const trace::Trace& trace = result.trace;
    const std::int64_t until = fired_at(fired, result);
    const ContextEvent& last = events_[context_.empty() ? at_ : context_.front()];
    std::uint64_t times = 0;
    for (const trace::Event& event : trace.events)
      if (event.ts_ns <= until && of_node(trace, event, fired.node) && meets(trace, event, last.condition)) ++times;
    return times == 0 ? std::string{} : fmt::format("{} {} {} {}", fired.id, fired.node, last.key, times);
  }

  void reached(bool in_order) {
    out_of_order_ = !in_order;
    // It was done before as well, at the start perhaps: that time may be the one, all the more if this one was not.
    const bool more = events_[at_].occurrence > 1;
    if (!in_order && !more) {
      ended_ = true;
      return;
    }
    context_.push_back(at_);
    keys_.insert(events_[at_].key);
    if (more)
      step_ = Step::count;
    else
      further();
  }

  void further() {
    step_ = Step::extend;
    ++at_;
    // A repeated event tells little about where the node was: the context ends (algorithm 1, line 5).
    if (at_ < events_.size() && keys_.contains(events_[at_].key)) ended_ = true;
    if (context_.size() >= kMostContext) ended_ = true;
  }

  // The event is not part of the way to the bug. Without any context yet, the one before it may be.
  void unreached() {
    if (!context_.empty() || ++unseen_ > kMostUnseen) {
      ended_ = true;
      return;
    }
    const std::string key = events_[at_].key;
    while (at_ < events_.size() && events_[at_].key == key) ++at_;
  }

  void advance() {
    asked_ = false;
    if (step_ == Step::spread) {
      step_ = resume_;
      return;
    }
    if (step_ == Step::count) {
      further();
      return;
    }
    amplified_ = amplified_ || step_ == Step::amplify;
    context_.push_back(at_);
    keys_.insert(events_[at_].key);
    further();
  }

  static std::string group_of(const std::string& id) { return id + "-anywhere"; }

  // The same on every node, whichever comes first. What waits for the fault waits for the alternative
  // too: with the nodes' roles exchanged. Cuts concern the whole deployment and stay as they are.
  Schedule amplify(Schedule schedule, std::size_t index) const {
    const std::string home = schedule.faults[index].node;
    std::set<std::string> moved{schedule.faults[index].id};
    for (std::size_t grown = 0; grown != moved.size();) {
      grown = moved.size();
      for (const Fault& fault : schedule.faults)
        for (const std::string& id : fault.after)
          if (moved.contains(id)) moved.insert(fault.id);
    }
    std::vector<Fault> all;
    for (Fault& fault : schedule.faults) {
      if (!moved.contains(fault.id)) {
        all.push_back(std::move(fault));
        continue;
      }
      fault.group = group_of(fault.id);
      const Fault original = fault;
      all.push_back(std::move(fault));
      for (const std::string& other : others_) {
        Fault copy = original;
        copy.id = fmt::format("{}-on-{}", original.id, other);
        for (std::string& id : copy.after)
          if (moved.contains(id)) id = fmt::format("{}-on-{}", id, other);
        if (copy.kind != FaultKind::partition)
          copy.node = copy.node == home ? other : copy.node == other ? home : copy.node;
        all.push_back(std::move(copy));
      }
    }
    schedule.faults = std::move(all);
    return schedule;
  }

  const Schedule base_;
  const std::size_t fault_;
  const std::vector<ContextEvent> events_;  // the latest first
  const std::vector<std::string> others_;   // nodes that may play the role instead
  const std::string why_;
  std::vector<ReachedContext>* const contexts_;  // for level 3
  std::vector<std::size_t> context_;        // accepted events, the latest first
  std::set<std::string> keys_;
  std::size_t at_ = 0;
  Step step_ = Step::extend;
  Step resume_ = Step::extend;              // after a spread
  std::vector<Condition> spread_;
  std::vector<Condition> hit_;              // of a schedule that showed the bug on this node
  int unseen_ = 0;
  bool out_of_order_ = false;
  bool amplified_ = false;
  bool asked_ = false;
  bool ended_ = false;
};

// --- all of them

class Level2 final : public Proposer {
 public:
  explicit Level2(const SearchContext& context)
      : context_(context), plan_(*context.plan), config_(*context.inputs->config), promising_(plan_) {
    const bool only_symptoms =
        std::all_of(plan_.candidates.begin(), plan_.candidates.end(), [](const Candidate& c) { return c.symptom; });
    std::vector<const Candidate*> candidates;
    for (const Candidate& c : plan_.candidates)
      if (!c.symptom || only_symptoms) candidates.push_back(&c);
    // By rank: the contexts of process faults, the first shape of each call; then other bases and shapes.
    add_contexts(candidates, false);
    add_calls(candidates, 0);
    add_contexts(candidates, true);
    add_calls(candidates, 1);
    add_calls(candidates, 2);
    std::stable_sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
      return std::pair(a.wave, a.rank) < std::pair(b.wave, b.rank);
    });
    for (Waiting& waiting : waiting_) branches_.push_back(std::move(waiting.branch));
    waiting_.clear();
    // Calls have many occurrences, crashes and pauses one place: level 3, which moves that place, needs runs too.
    const std::vector<int>& levels = config_.diagnose.levels;
    if (placed_ && std::find(levels.begin(), levels.end(), 3) != levels.end())
      most_ = static_cast<std::size_t>(std::max(1, config_.diagnose.max_runs)) * 6 / 10;
  }

  std::optional<Proposal> next() override {
    while (!branches_.empty() && made_ < most_) {
      if (turn_ >= branches_.front()->turn() && branches_.size() > 1) {
        branches_.push_back(std::move(branches_.front()));
        branches_.pop_front();
        turn_ = 0;
      }
      if (std::optional<Proposal> proposal = branches_.front()->next()) {
        ++turn_;
        ++made_;
        return proposal;
      }
      branches_.pop_front();
      turn_ = 0;
    }
    if (!planned_second_) second_ = promising_.take(kMostSecondTries);
    planned_second_ = true;
    if (again_ < second_.size()) return second_[again_++];
    return std::nullopt;
  }

  // Only within one branch and its turn: what is learned goes to the first one.
  bool goes_on() const override {
    return made_ < most_ && !branches_.empty() && branches_.front()->goes_on() &&
           (turn_ < branches_.front()->turn() || branches_.size() == 1);
  }

  void learn(const Proposal& proposal, const RunResult& result) override {
    if (proposal.again) return;
    const std::size_t reached = context_.reached == nullptr ? 0 : context_.reached->size();
    if (!branches_.empty()) branches_.front()->learn(proposal, result);
    for (std::size_t i = reached; context_.reached != nullptr && i < context_.reached->size(); ++i)
      (*context_.reached)[i].signs = promising_.score(result.trace);
    if (result.verdict != schedule::Verdict::not_reproduced) return;
    // Symptoms of the dump that come back, or much of the context: chance may have missed the bug.
    int score = promising_.score(result.trace) * 100;
    for (const Fault& fault : proposal.schedule.faults)
      if (fault.kind != FaultKind::syscall)
        for (const Condition& condition : fault.when) score += condition.kind == ConditionKind::elapsed ? 0 : 1;
    if (score > 0) promising_.add(proposal, score);
  }

 private:
  struct Waiting {
    int wave = 0;
    int rank = 0;
    std::unique_ptr<Branch> branch;
  };

  // --- calls

  // Calls of that name the node makes in a run without faults; more need not be tried.
  std::uint64_t most_calls(const Candidate& c) const {
    std::uint64_t most = static_cast<std::uint64_t>(std::max(1, config_.diagnose.syscall_attempts));
    if (!context_.inputs->profile || context_.inputs->profile->runs < 1) return most;
    const profile::Profile& profile = *context_.inputs->profile;
    const auto runs = static_cast<std::uint64_t>(profile.runs);
    const auto node = profile.syscalls.find(c.node);
    if (node == profile.syscalls.end()) return most;
    const auto call = node->second.find(c.fault.call.syscall);
    // Not in it at all: made only because of the faults, perhaps.
    if (call != node->second.end()) most = std::min(most, std::max<std::uint64_t>(1, (call->second + runs - 1) / runs));
    return most;
  }

  // What level 1 saw: fewer calls than one were made, or so many and no more.
  std::uint64_t most_seen(const Fault& fault, std::uint64_t most) const {
    if (context_.past == nullptr) return most;
    for (const PastRun& past : *context_.past) {
      if (past.oracle != OracleAnswer::miss) continue;
      for (const Fault& other : past.schedule.faults) {
        if (other.kind != FaultKind::syscall || other.node != fault.node || !(other.call == fault.call) ||
            other.when != fault.when || !other.after.empty())
          continue;
        for (const FaultOutcome& outcome : past.faults)
          if (outcome.id == other.id && !outcome.fired && !outcome.withdrawn) most = std::min(most, outcome.seen);
      }
    }
    return most;
  }

  void add_call(const Candidate& c, Fault fault, int wave, const char* what) {
    fault.after.clear();
    fault.count = 1;
    const std::uint64_t most = most_seen(fault, most_calls(c));
    if (most == 0) return;
    waiting_.push_back({wave, c.rank, std::make_unique<CountBranch>(config_.name, std::move(fault), most,
                                                                     fmt::format("{}{}", what, c.why))});
  }

  // Wave 0: counted from the node's start; 1: counted from about when it failed; 2: only one call.
  void add_calls(const std::vector<const Candidate*>& candidates, int wave) {
    std::size_t calls = 0;
    for (const Candidate* c : candidates) {
      if (c->kind != FaultKind::syscall || c->profiled || c->ordinariness > 2) continue;
      const config::Node* node = config_.find(c->node);
      if (node != nullptr && node->attach) continue;  // its calls can't be made to fail
      if (++calls > kMostCalls) return;
      Fault fault = c->fault;
      fault.when.clear();
      if (wave == 0) {
        add_call(*c, fault, wave, "");
      } else if (wave == 1) {
        const Fault* timed = !c->fault.when.empty() ? &c->fault : nullptr;
        for (const Fault& shape : c->alternatives)
          if (timed == nullptr && !shape.when.empty() && shape.call == c->fault.call) timed = &shape;
        if (timed != nullptr) add_call(*c, *timed, wave, "counted from about the time it failed; ");
      } else if (fault.times != 1) {
        fault.times = 1;
        add_call(*c, std::move(fault), wave, "that one only; ");
      }
    }
  }

  // --- crashes, pauses and partitions

  // The schedule of level 1 with that fault and the most (or least) others of its kind.
  const Schedule* base_of(const std::string& id, bool alone) const {
    const Schedule* best = nullptr;
    for (const Schedule& schedule : plan_.schedules) {
      if (schedule.find(id) == nullptr ||
          std::any_of(schedule.faults.begin(), schedule.faults.end(), [](const Fault& f) { return f.kind == FaultKind::syscall; }))
        continue;
      if (alone && schedule.faults.size() != 1) continue;
      if (best == nullptr || schedule.faults.size() > best->faults.size()) best = &schedule;
    }
    return best;
  }

  const Candidate* candidate_of(const std::string& id) const {
    for (const Candidate& c : plan_.candidates)
      if (c.fault.id == id) return &c;
    return nullptr;
  }

  void add_contexts(const std::vector<const Candidate*>& candidates, bool alone) {
    std::size_t faults = 0;
    for (const Candidate* c : candidates) {
      if (c->kind == FaultKind::syscall) continue;
      const Schedule* base = base_of(c->fault.id, alone);
      if (base == nullptr || (alone && base == base_of(c->fault.id, false))) continue;
      if (++faults > kMostFaults) return;
      const auto at = static_cast<std::size_t>(std::find_if(base->faults.begin(), base->faults.end(), [&](const Fault& f) {
                        return f.id == c->fault.id;
                      }) - base->faults.begin());
      // Conditions count only once the faults before it were injected: what came before them is no help.
      std::int64_t since = std::numeric_limits<std::int64_t>::min();
      for (const std::string& id : base->faults[at].after)
        if (const Candidate* before = candidate_of(id)) since = std::max(since, before->first_ts);
      std::int64_t until = c->first_ts;
      // When a pause began is known to the tracer's precision only; a paused node does nothing.
      if (c->kind == FaultKind::pause) until += std::min<std::int64_t>(50'000'000, (c->last_ts - c->first_ts) / 4);
      std::vector<ContextEvent> events = events_before(c->node, since, until);
      if (events.empty()) continue;
      placed_ = placed_ || c->kind != FaultKind::partition;
      // A cut concerns the whole deployment, whatever role the node plays.
      std::vector<std::string> others;
      const config::Node* home = config_.find(c->node);
      for (const config::Node& node : config_.nodes)
        if (c->kind != FaultKind::partition && node.name != c->node && (!node.attach || (home != nullptr && home->attach))) others.push_back(node.name);
      waiting_.push_back({alone ? 1 : 0, c->rank,
                          std::make_unique<ContextBranch>(*base, at, std::move(events), std::move(others),
                                                          alone ? "without the other faults" : "", context_.reached)});
    }
  }

  std::vector<ContextEvent> events_before(const std::string& node, std::int64_t since, std::int64_t until) {
    if (!index_) {
      Result<NodeMap> nodes = NodeMap::make(*context_.inputs);
      if (!nodes) return {};  // make_plan() needs it too and has said so
      for (int i = 0; i < nodes->count(); ++i) nodes_.emplace(nodes->name(i), i);
      index_.emplace(*context_.inputs, *nodes);
    }
    const auto it = nodes_.find(node);
    return it == nodes_.end() ? std::vector<ContextEvent>{} : index_->before(it->second, since, until, kMostEvents);
  }

  const SearchContext context_;
  const Plan& plan_;
  const config::Config& config_;
  Promising promising_;
  std::map<std::string, int> nodes_;
  std::optional<ContextIndex> index_;   // made when first needed: it reads all events
  std::vector<Waiting> waiting_;
  std::deque<std::unique_ptr<Branch>> branches_;
  std::vector<Proposal> second_;
  std::size_t again_ = 0;
  std::size_t made_ = 0;                // first tries
  std::size_t most_ = std::numeric_limits<std::size_t>::max();
  int turn_ = 0;
  bool planned_second_ = false;
  bool placed_ = false;                 // a crash or pause has events before it that it may wait for
};

}  // namespace

std::unique_ptr<Proposer> make_level2(const SearchContext& context) { return std::make_unique<Level2>(context); }

}  // namespace rose::diagnose
