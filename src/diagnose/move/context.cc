// Level 2: faults that wait for their context. This is algorithm 1 of the paper, applied to the node's events before
// the fault: in the first trial the fault waits for the last event, in the next trial also for the event before that,
// and so on. If it is another node that produces the event in the test deployment, the fault is armed on all nodes, and
// the first node that meets the context receives it (amplification); partitions are not amplified. Contexts that the
// survey rules out are not tried: events that no node produces, and contexts whose fault would fire at a moment that
// was tried already.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "base/text.h"
#include "diagnose/move.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostContext = 10;  // conditions in the context of one fault
constexpr std::size_t kMostEvents = 64;   // events before one fault that are considered
constexpr int kMostUnseen = 2;            // the move ends after more than this many events that no node produced
constexpr std::size_t kMostFaults = 8;    // process and network faults whose contexts are tried
// Without a survey, an occurrence beyond this is not tried, because it is unknown whether the event happens that often
// in the test deployment.
constexpr std::uint64_t kMostOccurrence = 50;
constexpr std::int64_t kTraceSlack = 2'000'000;  // ns, tolerance between the clocks of the injector and of the tracer
constexpr std::uint64_t kLater = 2;    // at most this many further occurrences are tried if the window began late
constexpr int kMostLookedAt = 20'000;  // order_kept() examines at most this many events of a run's trace
constexpr std::size_t kMostOpenEvents = 4000;  // events considered in a time span that logs leave open
constexpr std::size_t kMostOpenKinds = 24;     // kinds of events in that time span that are tried
constexpr std::size_t kMostOpenTimes = 4;      // occurrences of each kind that are tried
// moments in that time span for which the survey asks place questions in advance
constexpr std::size_t kMostOpenAhead = 6;
// of each other node, at most this many events before a fault are tried
constexpr std::size_t kMostElsewhereEvents = 2;
constexpr std::size_t kMostElsewhere = 6;  // events before a fault that are tried, of all other nodes together

// True if the dump may have begun after the node started. Its counts of events are then lower bounds.
bool began_late(const Plan& plan) { return plan.workload_ts == 0; }

// True for faults that concern the whole deployment, so that the role of their node does not matter.
bool of_network(FaultKind kind) { return kind == FaultKind::partition || kind == FaultKind::network; }

bool of_node(const trace::Trace& trace, const trace::Event& event, std::string_view node) {
  if (event.type != trace::EventType::af && event.type != trace::EventType::sys) return false;
  return (event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node)) == node;
}

class ContextMove final : public Move {
 public:
  struct Setup {
    Schedule base;
    std::size_t fault = 0;
    std::vector<ContextEvent> events;  // the latest first
    std::vector<std::string> others;   // nodes that may have the role of the fault's node in the test deployment
    double prior = 0;
    std::string why;
    // `events` are alternative moments, most likely first, instead of a sequence that precedes one moment
    bool open = false;
  };

  ContextMove(const World& world, Setup setup)
      : world_(world),
        base_(std::move(setup.base)),
        fault_(setup.fault),
        events_(std::move(setup.events)),
        others_(std::move(setup.others)),
        prior_(setup.prior),
        why_(std::move(setup.why)),
        open_(setup.open),
        surveyed_(world.survey.made && base_.faults[fault_].after.empty() && world.uses("survey")) {
    begin_event();
  }

  NextTrial peek() override {
    if (pending_) return nullptr;
    skip_known_moments();
    if (!hit_.empty())
      // The context reproduced the bug, but not reliably: another node may have the role in other runs.
      spread(std::exchange(hit_, {}));
    if (step_ != Step::spread && done()) return nullptr;
    const bool anywhere = amplified_ || step_ == Step::amplify || step_ == Step::spread;
    Trial t;
    t.level = 2;
    t.schedule = base_;
    t.schedule.faults[fault_].when = conditions();
    std::string list;
    for (const Condition& condition : t.schedule.faults[fault_].when)
      list += fmt::format("{}{}", list.empty() ? "" : ", then ", context_words(condition));
    const std::string count =
        step_ == Step::one && variants_.front() > 1 ? fmt::format(", {} time", ordinal_text(variants_.front())) : "";
    t.why = fmt::format("{} after {}{}{}", base_.faults[fault_].id, list, count,
                        anywhere ? ", on whichever node does that first" : "");
    if (!why_.empty()) t.why += fmt::format(" ({})", why_);
    double unsure = 1;
    if (surveyed_ && !anywhere) {
      if (std::optional<std::string> moment =
              moment_in(world_.survey.trace, base_.faults[fault_].node, t.schedule.faults[fault_].when))
        t.moment = *std::move(moment);
      else unsure = kNotSurveyed;
    }
    if (anywhere) t.schedule = amplify(std::move(t.schedule), fault_);
    t.yield = prior_ * world_.average_factor(base_) * kFirstContext * std::pow(open_ ? kOpenStep : kNextStep, trials_) *
              unsure;
    return std::make_shared<const Trial>(std::move(t));
  }

  void take() override {
    pending_ = true;
    ++trials_;
  }

  std::unique_ptr<Move> clone() const override { return std::make_unique<ContextMove>(*this); }

  void learn(const Trial& tried, const TrialOutcome& run) override {
    pending_ = false;
    const RunResult& result = *run.result;
    const Fault* fired = winner(tried.schedule, result);
    const bool in_order = fired != nullptr && order_kept(*fired, result);
    if (fired != nullptr) {
      if (!tried.moment.empty()) moments_.insert(tried.moment);
      reached_place(tried.schedule, *fired, in_order, run);
    }
    if (fired != nullptr && result.verdict == schedule::Verdict::reproduced && !amplified_ && step_ == Step::one &&
        !others_.empty())
      hit_ = tried.schedule.faults[fault_].when;
    switch (step_) {
      case Step::one:
        if (fired != nullptr) {
          reached_ = true;
          in_order_ = in_order_ || in_order;
        } else if (!amplified_ && !others_.empty() && context_.empty() && newest_unmet(result)) {
          step_ = Step::amplify;
          return;
        } else if (!amplified_ && !others_.empty() && role_elsewhere(result)) {
          spread(accepted());
          return;
        } else if (!amplified_ && !others_.empty() && newest_unmet(result) && variants_.front() == 1) {
          step_ = Step::amplify;
          return;
        }
        next_variant();
        return;
      case Step::spread:
        amplified_ = fired != nullptr;
        step_ = Step::one;
        if (fired == nullptr) ended_ = true;
        return;
      case Step::amplify:
        step_ = Step::one;
        if (fired != nullptr) {
          amplified_ = true;
          reached_ = true;
          in_order_ = in_order_ || in_order;
        } else {
          ++unseen_;  // no node produces the event, so it is left out of the context
        }
        next_variant();
        return;
    }
  }

  std::vector<std::unique_ptr<Move>> offspring() override { return std::move(offspring_.moves); }

 private:
  // one: adds the next earlier event to the context, on the node itself, in one of its variants. amplify: does this on
  // every node. spread: waits on every node for a context that was met on this node.
  enum class Step { one, amplify, spread };

  bool done() const { return ended_ || at_ >= events_.size() || variants_.empty(); }

  // Sets the variants of the event, that is, the occurrences to wait for: the observed one, if this deployment has that
  // many, and the first one. If the window began late, also the occurrences right after the observed one, because the
  // observed count is then a lower bound.
  void begin_event() {
    variants_.clear();
    reached_ = in_order_ = false;
    step_ = Step::one;
    if (at_ >= events_.size()) return;
    const std::uint64_t wanted = events_[at_].occurrence;
    const std::optional<std::uint64_t> here =
        surveyed_ ? std::optional(times_on(base_.faults[fault_].node)) : std::nullopt;
    if (open_) {
      variants_.push_back(here ? std::clamp<std::uint64_t>(wanted, 1, std::max<std::uint64_t>(1, *here)) : wanted);
      return;
    }
    if (wanted > 1 && here && wanted <= *here) variants_.push_back(wanted);
    if (here && late_times())
      for (std::uint64_t later = wanted + 1; later <= std::min(*here, wanted + kLater); ++later)
        variants_.push_back(later);
    variants_.push_back(1);
    if (wanted == 1) std::rotate(variants_.begin(), variants_.end() - 1, variants_.end());
    if (wanted > 1 && !here && wanted <= kMostOccurrence) variants_.push_back(wanted);
  }

  [[nodiscard]] bool late_times() const { return began_late(world_.plan) && context_.empty() && !open_; }

  void next_variant() {
    variants_.pop_front();
    if (variants_.empty()) end_event();
  }

  void end_event() {
    if (open_) {
      ++at_;
    } else if (reached_) {
      context_.push_back(at_);
      keys_.insert(events_[at_].key);
      // The run met the context in another order than production, so longer contexts would lead away from the failure.
      if (!in_order_) ended_ = true;
      ++at_;
      // A repeated event hardly identifies the state of the node, so the context ends (algorithm 1, line 5).
      if (at_ < events_.size() && keys_.contains(events_[at_].key)) ended_ = true;
      if (context_.size() >= kMostContext) ended_ = true;
    } else if (!context_.empty() || ++unseen_ > kMostUnseen) {
      ended_ = true;  // in the test deployment, this event never precedes the accepted events
    } else {
      skip_event();  // the context is still empty: it may begin with the next earlier event
    }
    begin_event();
  }

  // Skips all occurrences of the current event.
  void skip_event() {
    const std::string key = events_[at_].key;
    while (at_ < events_.size() && events_[at_].key == key) ++at_;
  }

  // How often the node produces the current event in the survey's trace.
  std::uint64_t times_on(std::string_view node) const {
    std::uint64_t times = 0;
    for (const trace::Event& event : world_.survey.trace.events)
      if (of_node(world_.survey.trace, event, node) && meets(world_.survey.trace, event, events_[at_].condition))
        times += times_of(event);
    return times;
  }

  // Skips events that the node never produces in the survey, and contexts whose moment was tried already.
  void skip_known_moments() {
    while (surveyed_ && !amplified_ && step_ == Step::one && hit_.empty() && !done()) {
      if (!open_ && context_.empty() && times_on(base_.faults[fault_].node) == 0) {
        const bool elsewhere =
            std::any_of(others_.begin(), others_.end(), [&](const std::string& node) { return times_on(node) > 0; });
        if (elsewhere) {
          step_ = Step::amplify;
          return;
        }
        if (trials_ > 0 || at_ + 1 < events_.size()) {
          skip_event();
          begin_event();
          continue;
        }
        return;
      }
      const std::optional<std::string> moment = moment_in(world_.survey.trace, base_.faults[fault_].node, conditions());
      if (!moment || !moments_.contains(*moment) || !world_.uses("moments")) return;
      reached_ = in_order_ = true;
      next_variant();
    }
  }

  // Makes the next trial wait on every node for these conditions, which were met on this node. Later trials extend the
  // context from there.
  void spread(std::vector<Condition> when) {
    spread_ = std::move(when);
    step_ = Step::spread;
  }

  // The conditions of the next trial, the earliest event first. The event that was added last is the earliest one.
  std::vector<Condition> conditions() const {
    if (step_ == Step::spread) return spread_;
    std::vector<Condition> list{events_[at_].condition};
    if (step_ == Step::one)
      list.front().count = static_cast<int>(std::min<std::uint64_t>(variants_.front(), 1'000'000));
    for (Condition& condition : accepted()) list.push_back(std::move(condition));
    return list;
  }
  std::vector<Condition> accepted() const {
    std::vector<Condition> list;
    for (auto it = context_.rbegin(); it != context_.rend(); ++it) list.push_back(events_[*it].condition);
    return list;
  }

  // The fault that fired: the fault of this move, or one of its alternatives; nullptr if none of them did.
  const Fault* winner(const Schedule& schedule, const RunResult& result) const {
    const Fault& mine = base_.faults[fault_];
    for (const Fault& fault : schedule.faults) {
      if (fault.id != mine.id && (fault.group.empty() || fault.group != group_of(mine.id))) continue;
      const FaultOutcome* outcome = outcome_of(result, fault.id);
      if (outcome != nullptr && outcome->fired) return &fault;
    }
    return nullptr;
  }

  // True if the condition that was added last was not met. Otherwise this node is the right one and only a later
  // condition was not met.
  bool newest_unmet(const RunResult& result) const {
    const FaultOutcome* outcome = outcome_of(result, base_.faults[fault_].id);
    return outcome == nullptr || outcome->conditions.empty() || !outcome->conditions.front().met;
  }

  // True if the node did not produce the last event of the context in this run, although it did so in earlier runs. So
  // the node has the role in some runs only.
  bool role_elsewhere(const RunResult& result) const {
    if (context_.empty() || result.trace.events.empty()) return false;
    const std::string& home = base_.faults[fault_].node;
    return std::none_of(result.trace.events.begin(), result.trace.events.end(), [&](const trace::Event& event) {
      return of_node(result.trace, event, home) && meets(result.trace, event, events_[context_.front()].condition);
    });
  }

  // When the fault fired, by the clock of the run's trace; 0: unknown.
  static std::int64_t fired_at(const Fault& fired, const RunResult& result) {
    const FaultOutcome* outcome = outcome_of(result, fired.id);
    if (outcome != nullptr && outcome->fired && result.trace.meta.workload_ts != 0)
      return result.trace.meta.workload_ts + outcome->fired_ns + kTraceSlack;
    for (const trace::Event& event : result.trace.events)
      if (event.type == trace::EventType::ps && (event.flags & trace::kInjected) != 0 &&
          result.trace.str(event.node) == fired.node)
        return event.ts_ns;
    return 0;
  }

  // The paper's processTrace: true if the last events before the fault are those of the context. Only events that
  // production's dump contains are compared, because many other events depend on the timing of this run.
  bool order_kept(const Fault& fired, const RunResult& result) const {
    const trace::Trace& trace = result.trace;
    const std::int64_t until = fired_at(fired, result);
    if (until == 0) return true;  // without a time, only the conditions are known, and they were met in order
    std::set<std::string> wanted;
    if (step_ != Step::spread) wanted.insert(events_[at_].key);
    for (const std::size_t i : context_) wanted.insert(events_[i].key);
    std::map<std::string, const Condition*> known;
    for (const ContextEvent& event : events_) known.emplace(event.key, &event.condition);
    // The event that made the fault fire was the last one, even if the tracer did not record it.
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
    // If the trace contains none of the events (for example because functions of that node are not traced), the order
    // is unknown.
    return !any || last == wanted || looked_at > kMostLookedAt;
  }

  // The event at which the fault fired, and its ordinal, as a key: contexts of different lengths may fire at the same
  // moment.
  std::string came_at(const Fault& fired, const RunResult& result) const {
    const trace::Trace& trace = result.trace;
    const std::int64_t until = fired_at(fired, result);
    const ContextEvent& last = events_[context_.empty() ? std::min(at_, events_.size() - 1) : context_.front()];
    std::uint64_t times = 0;
    for (const trace::Event& event : trace.events)
      if (event.ts_ns <= until && of_node(trace, event, fired.node) && meets(trace, event, last.condition))
        times += times_of(event);
    // Alternatives of a group share the moment, because it belongs to the role, whichever node had it.
    return times == 0 ? std::string{}
                      : fmt::format("{} {} {}", fired.group.empty() ? fired.id + " " + fired.node : fired.group,
                                    last.key, times);
  }

  // Adds a place move (level 3) that starts at the moment at which the fault fired.
  void reached_place(const Schedule& schedule, const Fault& fired, bool in_order, const TrialOutcome& run) {
    if (!world_.level(3) || (fired.kind != FaultKind::crash && fired.kind != FaultKind::pause)) return;
    const std::string moment = came_at(fired, *run.result);
    if (!moment.empty() && !places_.insert(moment).second) return;
    // The more observables the run brought back, the more likely this is the right moment.
    const double prior = prior_ / kShareContext * kSharePlace *
                         std::pow(open_ ? kOpenStep : kNextPlaceOfContext, offspring_made_) *
                         (in_order || open_ ? 1 : kOtherOrder) * (1 + 3 * run.observables);
    if (std::unique_ptr<Move> move = place_move(world_, schedule, fired.id, prior))
      offspring_.moves.push_back(std::move(move));
    // Occurrences that differ only because the window began late are equally likely, so they do not reduce the prior.
    if (!(step_ == Step::one && late_times() && variants_.size() > 1 && variants_[1] > variants_[0])) ++offspring_made_;
  }

  static std::string group_of(const std::string& id) { return id + "-anywhere"; }

  // Arms the fault on every node, as a group of which only the first one that is reached fires. Faults that wait for
  // this fault get alternatives that wait for its alternatives, in which the fault's node and the alternative's node
  // are exchanged. Partitions concern the whole deployment and keep their node.
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
      const std::size_t first = all.size();
      all.push_back(std::move(fault));
      for (const std::string& other : others_) {
        Fault copy = original;
        copy.id = fmt::format("{}-on-{}", original.id, other);
        for (std::string& id : copy.after)
          if (moved.contains(id)) id = fmt::format("{}-on-{}", id, other);
        if (!of_network(copy.kind)) copy.node = copy.node == home ? other : copy.node == other ? home : copy.node;
        all.push_back(std::move(copy));
      }
      // Sort the alternatives, so that equal schedules are recognised whichever node they started from.
      std::stable_sort(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
                       [](const Fault& a, const Fault& b) { return a.node < b.node; });
    }
    schedule.faults = std::move(all);
    return schedule;
  }

  const World& world_;
  const Schedule base_;
  const std::size_t fault_;
  const std::vector<ContextEvent> events_;
  const std::vector<std::string> others_;
  const double prior_;
  const std::string why_;
  const bool open_;
  const bool surveyed_;               // the survey shows at which moments contexts would be met
  std::vector<std::size_t> context_;  // indexes of the accepted events, the latest first
  std::set<std::string> keys_;
  std::size_t at_ = 0;
  std::deque<std::uint64_t> variants_;  // the occurrences of event at_ that remain to be tried
  bool reached_ = false;                // one of the variants was reached
  bool in_order_ = false;
  Step step_ = Step::one;
  std::vector<Condition> spread_;
  std::vector<Condition> hit_;     // conditions of a schedule that reproduced the bug on this node
  std::set<std::string> moments_;  // moments that were tried (moment_in())
  std::set<std::string> places_;   // moments at which place moves start
  Offspring offspring_;
  int offspring_made_ = 0;
  int trials_ = 0;
  int unseen_ = 0;
  bool amplified_ = false;
  bool pending_ = false;
  bool ended_ = false;
};

std::vector<ContextEvent> events_before(const World& world, const std::string& node, std::int64_t since,
                                        std::int64_t until) {
  const auto it = world.node_numbers.find(node);
  return it == world.node_numbers.end() || !world.contexts
             ? std::vector<ContextEvent>{}
             : world.contexts->before(it->second, since, until, kMostEvents);
}

// The moments at which a fault may have happened in a time span that logs leave open: the kinds of events in it, the
// rarest first, each at one occurrence; then each at another occurrence, and so on. Assumption: rare actions of a
// program change its state, so a crash during one of them has an effect (the paper's infrequent functions).
std::vector<ContextEvent> moments_between(const World& world, const Candidate& c) {
  std::vector<std::vector<ContextEvent>> kinds;  // by kind: its events, the latest first
  const auto it = world.node_numbers.find(c.node);
  if (it == world.node_numbers.end() || !world.contexts) return {};
  std::map<std::string, std::size_t> known;
  for (ContextEvent& event :
       world.contexts->before(it->second, std::numeric_limits<std::int64_t>::min(), c.first_ts, kMostOpenEvents)) {
    if (event.ts_ns < c.since_ts) break;
    const auto [kind, fresh] = known.try_emplace(event.key, kinds.size());
    if (fresh) kinds.emplace_back();
    kinds[kind->second].push_back(std::move(event));
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (kinds.size() > kMostOpenKinds) kinds.resize(kMostOpenKinds);
  std::vector<ContextEvent> moments;
  for (std::size_t round = 0; round < kMostOpenTimes; ++round)
    for (std::vector<ContextEvent>& kind : kinds) {
      // Occurrences: the last one, the first one, then those before the last.
      if (round >= kind.size()) continue;
      moments.push_back(round == 0 ? kind.front() : round == 1 ? kind.back() : kind[round - 1]);
    }
  return moments;
}

// The schedule of level 1 that contains the fault and no failed calls: the one with the most faults, up to
// kFewTogether, or, if `alone`, the one without other faults. nullptr if there is none.
const Schedule* base_of(const World& world, const std::string& id, bool alone) {
  const Schedule* best = nullptr;
  for (const Schedule& schedule : world.plan.schedules) {
    if (schedule.find(id) == nullptr || std::any_of(schedule.faults.begin(), schedule.faults.end(),
                                                    [](const Fault& f) { return hits_by_count(f.kind); }))
      continue;
    if (alone && schedule.faults.size() != 1) continue;
    if (!alone && schedule.faults.size() > kFewTogether) continue;
    if (best == nullptr || schedule.faults.size() > best->faults.size()) best = &schedule;
  }
  return best;
}

// A factor for the probability that the other faults of the schedule are needed in addition to the candidate. It is
// less than 1 if one of these faults has a far lower weight than the candidate, because that fault is then probably
// unrelated.
double others_count(const World& world, const Candidate& c, const Schedule& base) {
  double least = c.weight;
  for (const Fault& fault : base.faults)
    if (const Candidate* other = world.candidate(fault.id)) least = std::min(least, other->weight);
  return c.weight > 0 ? std::min(1.0, kMuchLessLikely * least / c.weight) : 1;
}

std::optional<ContextMove::Setup> setup_for(const World& world, const Candidate& c, const Schedule& base, double prior,
                                            std::string why) {
  ContextMove::Setup setup;
  setup.base = base;
  setup.fault = static_cast<std::size_t>(
      std::find_if(base.faults.begin(), base.faults.end(), [&](const Fault& f) { return f.id == c.fault.id; }) -
      base.faults.begin());
  // Conditions are counted after the preceding faults were injected, so earlier events cannot meet them.
  std::int64_t since = std::numeric_limits<std::int64_t>::min();
  for (const std::string& id : base.faults[setup.fault].after)
    if (const Candidate* before = world.candidate(id)) since = std::max(since, before->first_ts);
  std::int64_t until = c.first_ts;
  // The start of a pause is imprecise. A paused node produces no events, so a later limit does not include wrong ones.
  if (c.kind == FaultKind::pause) until += std::min<std::int64_t>(50'000'000, (c.last_ts - c.first_ts) / 4);
  if (c.since_ts != 0 && base.faults.size() == 1) {
    setup.events = moments_between(world, c);
    setup.open = !setup.events.empty();
  }
  if (!setup.open) setup.events = events_before(world, c.node, since, until);
  if (setup.events.empty()) return std::nullopt;
  const std::string& on = base.faults[setup.fault].node;
  const config::Node* home = world.config->find(on);
  for (const config::Node& node : world.config->nodes)
    if (!of_network(c.kind) && node.name != on && (!node.attach || (home != nullptr && home->attach)))
      setup.others.push_back(node.name);
  setup.prior = prior;
  setup.why = std::move(why);
  return setup;
}

// Adds the context move for the candidate in that schedule, and the moves for the other replicas that the host may
// correspond to.
void add_contexts(const World& world, const Candidate& c, const Schedule& base, double prior, const std::string& why,
                  Moves& moves) {
  const auto add = [&](const Schedule& schedule, double promise) {
    if (std::optional<ContextMove::Setup> setup = setup_for(world, c, schedule, promise, why))
      moves.push_back(std::make_unique<ContextMove>(world, *std::move(setup)));
  };
  add(base, prior);
  for (const Schedule& rotated : on_replicas(world, base)) add(rotated, prior * kOnReplica);
}

}  // namespace

bool waits_only_for_time(const Fault& fault) {
  return std::all_of(fault.when.begin(), fault.when.end(),
                     [](const Condition& c) { return c.kind == ConditionKind::elapsed; });
}

Moves context_moves(const World& world, const Schedule* lead) {
  Moves moves;
  if (!world.uses("contexts")) return moves;
  if (lead != nullptr) {
    for (const Fault& fault : lead->faults) {
      const Candidate* c = world.candidate(fault.id);
      if (c == nullptr || hits_by_count(c->kind) || (c->kind == FaultKind::clock && !c->stepped)) continue;
      if (!waits_only_for_time(fault)) continue;
      if (auto setup =
              setup_for(world, *c, *lead, kLead * kShareContext, "the schedule reproduced the bug, but too rarely"))
        moves.push_back(std::make_unique<ContextMove>(world, *std::move(setup)));
    }
    return moves;
  }
  const bool only_symptoms = std::all_of(world.plan.candidates.begin(), world.plan.candidates.end(),
                                         [](const Candidate& c) { return c.symptom; });
  std::size_t faults = 0;
  for (const Candidate* candidate : by_weight(world.plan)) {
    const Candidate& c = *candidate;
    if (hits_by_count(c.kind) || (c.kind == FaultKind::clock && !c.stepped) || (c.symptom && !only_symptoms)) continue;
    if (++faults > kMostFaults) break;
    const Schedule* base = base_of(world, c.fault.id, false);
    const Schedule* alone = base_of(world, c.fault.id, true);
    if (base == nullptr) base = alone;
    if (base == nullptr) continue;
    const bool with_others = base->faults.size() > 1;
    const double needed = with_others ? kContextWithOthers * others_count(world, c, *base) : 1;
    add_contexts(world, c, *base, kShareContext * c.weight * needed, "", moves);
    if (with_others && alone != nullptr)
      add_contexts(world, c, *alone, kShareContext * c.weight * std::max(kContextAlone, 1 - needed),
                   "without the other faults", moves);
  }
  return moves;
}

std::vector<Trial> elsewhere_trials(const World& world, const Schedule* lead) {
  std::vector<Trial> trials;
  if (!world.uses("elsewhere") || !world.contexts) return trials;
  const auto add = [&](const Candidate& c, const Schedule& base, double prior) {
    struct Moment {
      std::string node;
      ContextEvent event;
    };
    std::vector<Moment> moments;
    for (const auto& [node, number] : world.node_numbers) {
      if (node == c.node) continue;
      for (ContextEvent& event :
           world.contexts->before(number, std::numeric_limits<std::int64_t>::min(), c.first_ts, kMostElsewhereEvents))
        moments.push_back({node, std::move(event)});
    }
    // The latest first, because an event right before the fault is more likely to matter.
    std::stable_sort(moments.begin(), moments.end(),
                     [](const Moment& a, const Moment& b) { return a.event.ts_ns > b.event.ts_ns; });
    std::size_t made = 0;
    for (const Moment& moment : moments) {
      if (made >= kMostElsewhere) break;
      Condition condition = moment.event.condition;
      condition.node = moment.node;
      std::uint64_t wanted = moment.event.occurrence;
      if (world.survey.made) {
        const auto here = static_cast<std::uint64_t>(std::count_if(
            world.survey.trace.events.begin(), world.survey.trace.events.end(), [&](const trace::Event& event) {
              return of_node(world.survey.trace, event, moment.node) &&
                     meets(world.survey.trace, event, moment.event.condition);
            }));
        if (here == 0) continue;  // the node never produces this event in the test deployment
        wanted = std::min(wanted, here);
      } else if (wanted > kMostOccurrence) {
        continue;
      }
      condition.count = static_cast<int>(wanted);
      Trial t;
      t.level = 2;
      t.schedule = base;
      for (Fault& fault : t.schedule.faults)
        if (fault.id == c.fault.id) fault.when = {condition};
      t.yield = prior * std::pow(kNextStep, made);
      t.why = fmt::format("{} when {} does {}{}", c.fault.id, moment.node, context_words(condition),
                          wanted > 1 ? fmt::format(" for the {} time", ordinal_text(static_cast<std::int64_t>(wanted)))
                                     : std::string());
      trials.push_back(std::move(t));
      ++made;
    }
  };
  if (lead != nullptr) {
    for (const Fault& fault : lead->faults)
      if (const Candidate* c = world.candidate(fault.id);
          c != nullptr && !hits_by_count(c->kind) && c->kind != FaultKind::clock && waits_only_for_time(fault))
        add(*c, *lead, kLead * kShareElsewhere);
    return trials;
  }
  std::size_t faults = 0;
  for (const Candidate* c : by_weight(world.plan)) {
    if (hits_by_count(c->kind) || c->kind == FaultKind::clock || c->symptom) continue;
    if (++faults > kMostSurveyed) break;
    if (const Schedule* base = base_of(world, c->fault.id, true)) add(*c, *base, kShareElsewhere * c->weight);
  }
  return trials;
}

// The questions that place moves will ask for the first contexts of the likeliest faults.
std::vector<Question> place_questions_ahead(const World& world) {
  std::vector<Question> questions;
  std::size_t faults = 0;
  for (const Candidate* candidate : by_weight(world.plan)) {
    const Candidate& c = *candidate;
    if ((c.kind != FaultKind::crash && c.kind != FaultKind::pause) || c.symptom) continue;
    if (++faults > kMostSurveyed) break;
    std::vector<std::vector<Condition>> contexts;
    std::vector<ContextEvent> events;
    if (c.since_ts != 0) events = moments_between(world, c);
    for (std::size_t i = 0; i < std::min(events.size(), kMostOpenAhead); ++i) {
      contexts.push_back({events[i].condition});
      contexts.back()[0].count = static_cast<int>(events[i].occurrence);
    }
    const bool open = !events.empty();
    if (!open) events = events_before(world, c.node, std::numeric_limits<std::int64_t>::min(), c.first_ts);
    if (events.empty()) continue;
    if (!open) {
      contexts.push_back({events[0].condition});
      std::vector<std::uint64_t> times;
      if (events[0].occurrence > 1) times.push_back(events[0].occurrence);
      if (began_late(world.plan))
        for (std::uint64_t later = 1; later <= kLater; ++later) times.push_back(events[0].occurrence + later);
      for (const std::uint64_t time : times) {
        if (time > kMostOccurrence) continue;
        contexts.push_back({events[0].condition});
        contexts.back()[0].count = static_cast<int>(time);
      }
      for (std::size_t i = 1; i < events.size(); ++i)
        if (events[i].key != events[0].key) {
          contexts.push_back({events[i].condition, events[0].condition});
          break;
        }
    }
    for (std::vector<Condition>& context : contexts) {
      Fault fault = c.fault;
      fault.when = std::move(context);
      fault.after.clear();
      for (Question& question : place_questions(world, fault)) questions.push_back(std::move(question));
    }
  }
  return questions;
}

}  // namespace rose::diagnose
