#include "diagnose/level3.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/context.h"
#include "diagnose/signs.h"

namespace rose::diagnose {
namespace {

using schedule::CallMatch;
using schedule::Condition;
using schedule::ConditionKind;
using schedule::Fault;
using schedule::FaultKind;
using schedule::FaultOutcome;
using schedule::OracleAnswer;
using schedule::RunResult;
using schedule::Schedule;

constexpr std::size_t kMostContexts = 4;
constexpr std::size_t kMostCalls = 16;       // after one context
constexpr std::size_t kFirstKnown = 4;       // of the calls known to follow, before the general ones
constexpr std::size_t kTurn = 6;             // calls of one context before the next one has its turn
constexpr std::int64_t kFollows = 10'000'000'000;  // later ones have little to do with the context

struct Stop {
  CallMatch call;
  int count = 1;
};

bool has_context(const Fault& fault) {
  return fault.kind == FaultKind::crash && !fault.before &&
         std::any_of(fault.when.begin(), fault.when.end(), [](const Condition& c) { return c.kind != ConditionKind::elapsed; });
}

// The state-changing calls of `node` that follow where its conditions were met in order; of a context
// never met in full, those that follow its last event.
std::vector<Stop> calls_after(const trace::Trace& trace, std::string_view node, const std::vector<Condition>& when) {
  std::vector<Condition> wanted;
  for (const Condition& c : when)
    if (c.kind == ConditionKind::function || c.kind == ConditionKind::syscall) wanted.push_back(c);
  const auto follow = [&](const std::vector<Condition>& conditions) {
    std::vector<Stop> stops;
    std::map<std::string, int> counts;
    std::size_t met = 0;
    int seen = 0;
    std::int64_t met_ts = 0;
    for (const trace::Event& event : trace.events) {
      if (event.type != trace::EventType::af && event.type != trace::EventType::sys) continue;
      const std::string_view of = event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node);
      if (of != node) continue;
      if (met < conditions.size()) {
        if (!meets(trace, event, conditions[met]) || ++seen < conditions[met].count) continue;
        ++met;
        seen = 0;
        met_ts = event.ts_ns;
        continue;
      }
      if (event.type != trace::EventType::sys) continue;
      if (event.ts_ns - met_ts > kFollows || stops.size() >= kMostCalls) break;
      const std::optional<ContextEvent> call = context_event(trace, event, node);
      if (!call) continue;
      stops.push_back({call->condition.call, ++counts[call->key]});
    }
    return stops;
  };
  if (wanted.empty()) return {};
  std::vector<Stop> stops = follow(wanted);
  if (stops.empty() && wanted.size() > 1) stops = follow({wanted.back()});
  return stops;
}

// Writes are too many to be traced, yet what they leave unfinished matters; and what follows only
// after other faults no run without faults can show.
std::vector<Stop> general_stops() {
  std::vector<Stop> stops;
  const auto add = [&](const char* syscall, int count) {
    CallMatch call;
    call.syscall = syscall;
    stops.push_back({std::move(call), count});
  };
  add("write", 1);
  add("write", 2);
  add("f*sync", 1);
  add("rename*", 1);
  add("unlink*", 1);
  add("openat", 1);
  add("*write*64", 1);
  add("write", 3);
  return stops;
}

bool same(const Stop& a, const Stop& b) { return a.call == b.call && a.count == b.count; }

struct Branch {
  Schedule base;            // as level 2 reached it
  std::vector<Stop> stops;
  std::size_t at = 0;
  bool ended = false;
};

class Level3 final : public Proposer {
 public:
  explicit Level3(const SearchContext& context) : promising_(*context.plan) {
    if (context.past == nullptr) return;
    std::set<std::string> seen;
    for (const PastRun& past : *context.past) {
      if (past.level != 2 || branches_.size() >= kMostContexts) continue;
      const Fault* reached = nullptr;
      for (const Fault& fault : past.schedule.faults)
        for (const FaultOutcome& outcome : past.faults)
          if (outcome.id == fault.id && outcome.fired && has_context(fault)) reached = &fault;
      if (reached == nullptr || !seen.insert(schedule::fingerprint(past.schedule)).second) continue;
      for (const Condition& c : reached->when)
        if (c.kind == ConditionKind::function) functions_.insert(c.function);
      std::vector<Stop> known;
      if (context.control != nullptr) known = calls_after(*context.control, reached->node, reached->when);
      Branch branch{past.schedule, {}, 0, false};
      const auto take = [&](const Stop& stop) {
        if (branch.stops.size() >= kMostCalls) return;
        if (std::none_of(branch.stops.begin(), branch.stops.end(), [&](const Stop& other) { return same(stop, other); }))
          branch.stops.push_back(stop);
      };
      for (std::size_t i = 0; i < std::min(known.size(), kFirstKnown); ++i) take(known[i]);
      const std::vector<Stop> general = general_stops();
      for (const Stop& stop : general) take(stop);
      for (std::size_t i = kFirstKnown; i < known.size(); ++i) take(known[i]);
      branches_.push_back(std::move(branch));
    }
  }

  std::optional<Proposal> next() override {
    while (!branches_.empty()) {
      if (std::all_of(branches_.begin(), branches_.end(), [](const Branch& b) { return b.ended || b.at >= b.stops.size(); })) break;
      Branch& branch = branches_[current_];
      if (branch.ended || branch.at >= branch.stops.size() || turn_ >= kTurn) {
        current_ = (current_ + 1) % branches_.size();
        turn_ = 0;
        continue;
      }
      ++turn_;
      asked_ = current_;
      const Stop& stop = branch.stops[branch.at++];
      Proposal proposal;
      proposal.schedule = branch.base;
      for (Fault& fault : proposal.schedule.faults) {
        if (!has_context(fault)) continue;
        fault.before = stop.call;
        fault.before_count = stop.count;
      }
      const std::string object = stop.call.path.value_or(stop.call.peer.value_or(""));
      proposal.why = fmt::format("in its context, but only at {}({}){}", stop.call.syscall, object,
                                 stop.count > 1 ? fmt::format(", number {}", stop.count) : "");
      return proposal;
    }
    if (!planned_second_) second_ = promising_.take(kMostSecondTries);
    planned_second_ = true;
    if (again_ < second_.size()) return second_[again_++];
    return std::nullopt;
  }

  void learn(const Proposal& proposal, const RunResult& result) override {
    if (proposal.again) return;
    Branch& branch = branches_[asked_];
    bool armed = false;
    bool fired = false;
    for (const Fault& fault : proposal.schedule.faults) {
      if (!fault.before) continue;
      const FaultOutcome* outcome = outcome_of(result, fault.id);
      armed = armed || (outcome != nullptr && outcome->armed);
      fired = fired || (outcome != nullptr && outcome->fired);
    }
    // The context itself was not met: no other call of it will be.
    if (result.oracle != OracleAnswer::unknown && !armed && !fired) branch.ended = true;
    if (fired && result.verdict == schedule::Verdict::not_reproduced)
      if (const int score = promising_.score(result.trace); score > 0) promising_.add(proposal, score);
  }

  std::string left_out() const override {
    if (functions_.empty()) return {};
    return fmt::format("level 3 stopped nodes at the system calls that follow {} only: offsets inside functions are not in this "
                       "version of rose", *functions_.begin());
  }

 private:
  Promising promising_;
  std::vector<Branch> branches_;
  std::set<std::string> functions_;
  std::vector<Proposal> second_;
  std::size_t current_ = 0;
  std::size_t asked_ = 0;
  std::size_t again_ = 0;
  std::size_t turn_ = 0;
  bool planned_second_ = false;
};

}  // namespace

std::unique_ptr<Proposer> make_level3(const SearchContext& context) { return std::make_unique<Level3>(context); }

}  // namespace rose::diagnose
