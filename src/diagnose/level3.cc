#include "diagnose/level3.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "diagnose/code.h"
#include "diagnose/signs.h"
#include "diagnose/stops.h"

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

constexpr std::size_t kMostContexts = 4;
constexpr std::size_t kMostPlaces = 96;      // tries inside one function
constexpr std::size_t kMostRest = 32;        // of them at what is no call: until the next call nothing of it shows outside
constexpr std::size_t kLook = 32;            // places of a function that are looked at in one run
constexpr std::size_t kFewPlaces = 3;        // so few more are tried without another look
constexpr std::uint64_t kMostPasses = 4;     // times that a loop comes by one place
constexpr int kNever = 1'000'000'000;        // passes: a condition that is only counted
constexpr int kPlacesATurn = 6;                     // tries in one context before the next one has its turn

bool movable(const Fault& fault) {
  return (fault.kind == FaultKind::crash || fault.kind == FaultKind::pause) && !fault.before &&
         std::any_of(fault.when.begin(), fault.when.end(), [](const Condition& c) { return c.kind != ConditionKind::elapsed; });
}

// One context of level 2, and what is tried from there.
class PlaceBranch {
 public:
  PlaceBranch(const ReachedContext& reached, const SearchContext& search) : base_(reached.schedule) {
    const Fault* moved = nullptr;
    for (const Fault& fault : base_.faults) {
      if (!movable(fault)) continue;
      moved_.insert(fault.id);
      if (moved == nullptr || fault.id == reached.fired) moved = &fault;
    }
    if (moved == nullptr) return;
    stops_ = Stops(search.control, *moved);
    for (const Condition& c : moved->when)
      if (c.kind == ConditionKind::function && !c.offset) function_ = c.function;
    if (!function_.empty()) read_places(search.inputs->code, moved->node);
  }

  // What is tried next; nothing when all was.
  std::optional<Proposal> next() {
    if (ended_ || moved_.empty()) return std::nullopt;
    if (!std::exchange(looked_at_calls_, true)) {
      next_chunk(false);
      return look(true);
    }
    for (int attempt = 0; attempt < 2; ++attempt) {
      places_turn_ = !places_turn_;
      std::optional<Proposal> proposal = places_turn_ ? next_place() : next_stop();
      if (proposal) return proposal;
    }
    return next_place(true);
  }

  // Of what next() gave, in that order.
  void learn(const RunResult& result) {
    const Asked asked = asked_.front();
    asked_.pop_front();
    switch (asked.what) {
      case What::look: learn_look(result); return;
      case What::place: learn_place(asked.step, result); return;
      case What::stop: learn_stop(result); return;
    }
  }

  [[nodiscard]] bool fired(const RunResult& result) const {
    return std::any_of(result.faults.begin(), result.faults.end(),
                       [&](const FaultOutcome& outcome) { return outcome.fired && moved_.contains(outcome.id); });
  }
  // What comes next depends on a look that is under way.
  [[nodiscard]] bool looks() const { return !asked_.empty() && asked_.back().what == What::look; }
  // Why nothing is known of its function; "" when something is.
  [[nodiscard]] const std::string& blind() const { return blind_; }

 private:
  enum class What { look, place, stop };
  // A place of the function, and which of the node's passes of it is meant.
  struct Step {
    std::size_t place = 0;
    std::uint64_t pass = 1;
  };
  struct Asked {
    What what = What::stop;
    Step step;
  };

  // --- the calls that follow

  std::optional<Proposal> next_stop() {
    const std::optional<Stop> next = stops_.next();
    if (!next) return std::nullopt;
    const Stop& stop = *next;
    asked_.push_back({What::stop, {}});
    Proposal proposal;
    proposal.schedule = base_;
    for (Fault& fault : proposal.schedule.faults) {
      if (!moved_.contains(fault.id)) continue;
      fault.before = stop.call;
      fault.before_count = stop.count;
    }
    const std::string object = stop.call.path.value_or(stop.call.peer.value_or(""));
    proposal.why = fmt::format("in its context, but only at {}({}){}", stop.call.syscall, object,
                               stop.count > 1 ? fmt::format(", number {}", stop.count) : "");
    return proposal;
  }

  void learn_stop(const RunResult& result) {
    if (result.oracle == OracleAnswer::unknown) return;
    // The context itself was not met: nothing of it will be.
    ended_ = ended_ || std::none_of(result.faults.begin(), result.faults.end(), [&](const FaultOutcome& outcome) {
      return moved_.contains(outcome.id) && (outcome.armed || outcome.fired);
    });
  }

  // --- inside the function

  void read_places(CodeMap* code, const std::string& node) {
    if (code == nullptr) {
      blind_ = "the nodes' programs were not read";
      return;
    }
    Result<std::vector<CodePlace>> places = code->places(node, function_);
    if (!places) {
      blind_ = places.error().message;
      return;
    }
    places_ = *std::move(places);
    if (places_.empty()) blind_ = "no instruction but its first is known";
  }

  // In a hot loop, counting would take longer than all the rest of the run; system calls have their price anyway.
  [[nodiscard]] bool countable(std::size_t place) const { return places_[place].kind == PlaceKind::syscall || !places_[place].loop; }

  void next_chunk(bool rest) {
    chunk_.clear();
    while (known_ < places_.size() && chunk_.size() < kLook && (rest || places_[known_].kind != PlaceKind::other))
      chunk_.push_back(known_++);
  }
  [[nodiscard]] std::size_t worth_a_look() const {
    return static_cast<std::size_t>(std::count_if(chunk_.begin(), chunk_.end(), [&](std::size_t place) { return countable(place); }));
  }

  // `rest`: also the instructions that are no calls, when nothing else is left.
  std::optional<Proposal> next_place(bool rest = false) {
    if (tries_ >= kMostPlaces || rest_tries_ >= kMostRest) return std::nullopt;
    if (steps_.empty()) {
      next_chunk(rest);
      if (chunk_.empty()) return std::nullopt;
      if (looks_help_ && worth_a_look() > kFewPlaces) return look(false);
      plan_steps({});
      if (steps_.empty()) return std::nullopt;
    }
    const Step step = steps_.front();
    steps_.pop_front();
    ++tries_;
    if (places_[step.place].kind == PlaceKind::other) ++rest_tries_;
    asked_.push_back({What::place, step});
    Proposal proposal;
    proposal.schedule = base_;
    for (Fault& fault : proposal.schedule.faults)
      if (moved_.contains(fault.id)) fault.when.push_back(condition(step.place, static_cast<int>(step.pass)));
    const CodePlace& place = places_[step.place];
    proposal.why = fmt::format("in its context, but only at {} in {} (+{:#x}){}", place.name, function_, place.offset,
                               step.pass > 1 ? fmt::format(", time {}", step.pass) : "");
    return proposal;
  }

  Condition condition(std::size_t place, int count) const {
    Condition at;
    at.kind = ConditionKind::function;
    at.function = function_;
    at.offset = places_[place].offset;
    at.count = count;
    return at;
  }

  // The node's whole base, of which nothing else follows: an added condition is the last.
  void learn_place(const Step& tried, const RunResult& result) {
    if (fired(result) || result.oracle == OracleAnswer::unknown) return;
    if (!context_met(result)) {
      ended_ = true;
      return;
    }
    // The function ran, but not through here so often.
    std::erase_if(steps_, [&](const Step& step) { return step.place == tried.place; });
  }

  [[nodiscard]] bool context_met(const RunResult& result) const {
    return std::any_of(result.faults.begin(), result.faults.end(), [&](const FaultOutcome& outcome) {
      return moved_.contains(outcome.id) && (outcome.conditions.empty() || all_but_last(outcome));
    });
  }
  static bool all_but_last(const FaultOutcome& outcome) {
    return std::all_of(outcome.conditions.begin(), outcome.conditions.end() - 1,
                       [](const schedule::ConditionOutcome& condition) { return condition.met; });
  }

  // A run in which nothing is done, only counted how often the node comes by the places and makes calls: most of a
  // function's code is for other occasions, most calls are never made, and each would cost a run to learn that.
  // Conditions that can't be met count.
  Proposal look(bool at_calls) {
    asked_.push_back({What::look, {}});
    calls_of_look_ = at_calls;
    Proposal proposal;
    proposal.look = true;
    proposal.schedule = base_;
    const std::size_t worth = worth_a_look();
    const std::string places = worth == 0 ? "" : fmt::format("which of {} places in {} the node comes by", worth, function_);
    proposal.why = fmt::format("a look at {}{}{}", places, at_calls && worth > 0 ? ", and " : "", at_calls ? "which calls follow" : "");
    std::set<std::string> gone = moved_;  // and what waits for it
    for (std::size_t grown = 0; grown != gone.size();) {
      grown = gone.size();
      for (const Fault& fault : base_.faults)
        if (std::any_of(fault.after.begin(), fault.after.end(), [&](const std::string& id) { return gone.contains(id); }))
          gone.insert(fault.id);
    }
    std::erase_if(proposal.schedule.faults, [&](const Fault& fault) { return gone.contains(fault.id); });
    for (const Fault& fault : base_.faults) {
      if (!moved_.contains(fault.id)) continue;
      const auto count = [&](std::size_t i, const std::vector<Condition>& conditions) {
        Fault one = fault;
        one.id = look_id(fault.id, i);
        one.kind = FaultKind::crash;
        one.duration_ns = 0;
        one.group.clear();
        one.when.insert(one.when.end(), conditions.begin(), conditions.end());
        proposal.schedule.faults.push_back(std::move(one));
      };
      for (std::size_t i = 0; i < chunk_.size(); ++i)
        if (countable(chunk_[i])) count(i, {condition(chunk_[i], kNever)});
      Condition entry;  // how often it is entered again, to tell loops from further calls
      entry.kind = ConditionKind::function;
      entry.function = function_;
      entry.count = kNever;
      if (worth > 0) count(chunk_.size(), {entry});
      for (std::size_t i = 0; at_calls && i < stops_.kinds().size(); ++i) {
        Condition first;  // when, and then how often
        first.kind = ConditionKind::syscall;
        first.call = stops_.kinds()[i];
        Condition further = first;
        further.count = kNever;
        count(chunk_.size() + 1 + i, {first, further});
      }
    }
    return proposal;
  }

  static std::string look_id(const std::string& id, std::size_t i) { return fmt::format("{}-look-{}", id, i + 1); }

  void learn_look(const RunResult& result) {
    if (calls_of_look_) learn_calls(result);
    if (worth_a_look() > 0)
      learn_places(result);
    else
      plan_steps({});
  }

  void learn_calls(const RunResult& result) {
    std::vector<Stops::Seen> seen(stops_.kinds().size());
    bool met = false;
    bool armed = false;
    for (const std::string& id : moved_) {
      const std::size_t conditions = base_.find(id)->when.size();
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const FaultOutcome* outcome = outcome_of(result, look_id(id, chunk_.size() + 1 + i));
        if (outcome == nullptr || outcome->conditions.size() != conditions + 2) continue;
        armed = true;
        const schedule::ConditionOutcome& last = outcome->conditions[conditions - 1];
        const schedule::ConditionOutcome& call = outcome->conditions[conditions];
        met = met || last.met;
        if (!last.met || !call.met) continue;
        const std::int64_t after = call.met_ns - last.met_ns;
        seen[i].after_ns = seen[i].times == 0 ? after : std::min(seen[i].after_ns, after);
        seen[i].times = std::max(seen[i].times, 1 + outcome->conditions[conditions + 1].seen);
      }
    }
    if (met)
      stops_.looked(seen);
    else if (armed && result.oracle != OracleAnswer::unknown)
      ended_ = true;  // the context itself was not met: nothing of it will be
    else
      looks_help_ = false;
  }

  void learn_places(const RunResult& result) {
    // How often, on whichever node; nothing where the context was not met.
    const auto passes = [&](std::size_t i) {
      std::optional<std::uint64_t> most;
      for (const std::string& id : moved_) {
        const FaultOutcome* outcome = outcome_of(result, look_id(id, i));
        if (outcome == nullptr || outcome->conditions.empty() || !all_but_last(*outcome)) continue;
        most = std::max(most.value_or(0), outcome->conditions.back().seen);
      }
      return most;
    };
    const std::optional<std::uint64_t> entries = passes(chunk_.size());
    if (!entries) {
      ended_ = ended_ || result.oracle != OracleAnswer::unknown;
      looks_help_ = false;  // it could not be armed, or failed for reasons of its own
      plan_steps({});
      return;
    }
    std::map<std::size_t, std::uint64_t> times;
    for (std::size_t i = 0; i < chunk_.size(); ++i) {
      if (!countable(chunk_[i])) continue;
      const std::uint64_t seen = passes(i).value_or(0);
      // A loop comes by more often than the function is entered.
      times[chunk_[i]] = seen == 0 ? 0 : std::clamp<std::uint64_t>(seen / (*entries + 1), 1, kMostPasses);
    }
    plan_steps(times);
  }

  // How to go through the chunk: by kind, all first passes before any second one. `times`: how often one call of the
  // function comes by, where that is known.
  void plan_steps(const std::map<std::size_t, std::uint64_t>& times) {
    std::vector<std::tuple<PlaceKind, std::uint64_t, std::size_t>> order;
    for (const std::size_t place : chunk_) {
      const CodePlace& at = places_[place];
      const auto known = times.find(place);
      std::uint64_t most = known != times.end() ? known->second : at.loop ? 2 : 1;
      if (at.kind == PlaceKind::other) most = std::min<std::uint64_t>(most, 1);
      for (std::uint64_t pass = 1; pass <= most; ++pass) order.emplace_back(at.kind, pass, place);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [kind, pass, place] : order) steps_.push_back({place, pass});
  }

  const Schedule base_;                // as level 2 reached it
  std::set<std::string> moved_;        // faults of it that are moved on: alternatives of one
  std::string function_;               // the last one of its context; "" none
  std::vector<CodePlace> places_;      // best first
  std::string blind_;
  Stops stops_;
  std::deque<Step> steps_;
  std::vector<std::size_t> chunk_;     // looked at last
  std::size_t known_ = 0;              // places that were looked at, or are to be tried without
  std::size_t tries_ = 0;
  std::size_t rest_tries_ = 0;         // of them at what is no call
  std::deque<Asked> asked_;            // under way
  bool places_turn_ = false;
  bool looked_at_calls_ = false;
  bool calls_of_look_ = false;
  bool looks_help_ = true;
  bool ended_ = false;
};

// Best first: what brought back more of the dump, then what kept production's order. Of several contexts that were met
// at the same moment the longest one names that moment best.
std::vector<ReachedContext> best_of(const std::vector<ReachedContext>& reached) {
  std::vector<ReachedContext> best;
  const auto rank = [](const ReachedContext& c) { return std::tuple(c.signs, c.order_kept); };
  const auto length = [](const ReachedContext& c) {
    const Fault* fault = c.schedule.find(c.fired);
    return fault == nullptr ? std::size_t{0} : fault->when.size();
  };
  for (const ReachedContext& context : reached) {
    const auto same_moment = std::find_if(best.begin(), best.end(), [&](const ReachedContext& other) {
      return !context.moment.empty() && other.moment == context.moment;
    });
    if (same_moment == best.end())
      best.push_back(context);
    else if (std::tuple(rank(context), length(context)) > std::tuple(rank(*same_moment), length(*same_moment)))
      *same_moment = context;
  }
  std::stable_sort(best.begin(), best.end(), [&](const ReachedContext& a, const ReachedContext& b) { return rank(a) > rank(b); });
  if (best.size() > kMostContexts) best.resize(kMostContexts);
  return best;
}

class Level3 final : public Proposer {
 public:
  explicit Level3(const SearchContext& context) : promising_(*context.plan) {
    if (context.reached == nullptr) return;
    for (const ReachedContext& reached : best_of(*context.reached)) branches_.emplace_back(reached, context);
  }

  std::optional<Proposal> next() override {
    for (std::size_t without = 0; without < branches_.size();) {
      if (turn_ >= kPlacesATurn) move_on();
      if (std::optional<Proposal> proposal = branches_[current_].next()) {
        ++turn_;
        asked_.push_back(current_);
        return proposal;
      }
      move_on();
      ++without;
    }
    if (!asked_.empty()) return std::nullopt;  // second tries are chosen by what all first ones showed
    if (!planned_second_) second_ = promising_.take(kMostSecondTries);
    planned_second_ = true;
    if (again_ < second_.size()) return second_[again_++];
    return std::nullopt;
  }

  bool goes_on() const override { return asked_.empty() || !branches_[asked_.back()].looks(); }

  void learn(const Proposal& proposal, const RunResult& result) override {
    if (proposal.again) return;
    PlaceBranch& branch = branches_[asked_.front()];
    asked_.pop_front();
    branch.learn(result);
    if (!proposal.look && branch.fired(result) && result.verdict == schedule::Verdict::not_reproduced)
      if (const int score = promising_.score(result.trace); score > 0) promising_.add(proposal, score);
  }

  std::string left_out() const override {
    for (const PlaceBranch& branch : branches_)
      if (!branch.blind().empty())
        return fmt::format("level 3 stopped nodes at the system calls that follow their context, not at places inside functions: {}",
                           branch.blind());
    return {};
  }

 private:
  void move_on() {
    current_ = (current_ + 1) % branches_.size();
    turn_ = 0;
  }

  Promising promising_;
  std::vector<PlaceBranch> branches_;
  std::deque<std::size_t> asked_;     // branches whose proposals are under way
  std::vector<Proposal> second_;
  std::size_t current_ = 0;
  std::size_t again_ = 0;
  int turn_ = 0;
  bool planned_second_ = false;
};

}  // namespace

std::unique_ptr<Proposer> make_level3(const SearchContext& context) { return std::make_unique<Level3>(context); }

}  // namespace rose::diagnose
