// Levels 1 and 2, for evidence from logs: faults that no log reports, before a logged fault. Logs show that a node was
// killed, but not that it was partitioned before, or that another node was paused. Each such guess is first tried
// without the logged fault. If the node of the logged fault then does something that it does not do, or does less
// often, in the run without faults, the logged fault may matter in this state. So in further trials, the logged fault
// waits for this action. Other trials inject the logged fault at fixed times: while the guessed fault lasts, after it,
// and while two guessed faults last.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/units.h"
#include "diagnose/move.h"
#include "evidence/forms.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostLoggedEnds = 2;  // logged faults for which guesses are made
constexpr std::size_t kMostBefore = 12;     // guesses for one logged fault
constexpr std::size_t kMostPairs = 12;
constexpr std::size_t kMostNewActions = 12;  // actions after one guess

bool is_logged_end(const Candidate& c) {
  return (c.kind == FaultKind::crash || c.kind == FaultKind::pause) && c.plainness >= kLeastReported && !c.symptom;
}

class BeforeMove final : public Move {
 public:
  BeforeMove(const World& world, const Candidate& candidate)
      : world_(world), fault_(candidate.fault), prior_(candidate.weight) {
    fault_.after.clear();
    fault_.when.clear();
    const std::int64_t length = world.workload_ns > 0 ? world.workload_ns : world.plan.end_ts - world.plan.begin_ts;
    begin_ = points_of_workload(length).front();
    duration_ = rounded(std::clamp(length / 4, kShortBefore, kLongBefore));
    usual_ = actions_of(world.survey.trace, 0);
    guesses(world.config->nodes);
  }

  NextTrial peek() override {
    if (pending_ || proposed_.empty()) return nullptr;
    Trial t = best()->what;
    t.yield *= world_.average_factor(t.schedule);
    return std::make_shared<const Trial>(std::move(t));
  }

  void take() override {
    const auto at = best();
    running_ = *at;
    proposed_.erase(at);
    pending_ = true;
  }

  std::unique_ptr<Move> clone() const override { return std::make_unique<BeforeMove>(*this); }

  void learn(const Trial& tried, const TrialOutcome& run) override {
    pending_ = false;
    const RunResult& result = *run.result;
    if (running_.kind == Kind::guess) {
      const FaultOutcome* outcome = outcome_of(result, tried.schedule.faults[0].id);
      if (outcome != nullptr && outcome->fired) after_guess(tried.schedule.faults[0], *outcome, run);
      return;
    }
    const FaultOutcome* outcome = outcome_of(result, fault_.id);
    if (running_.kind == Kind::new_action && outcome != nullptr && outcome->fired &&
        result.oracle == OracleAnswer::miss && world_.level(3)) {
      const double prior =
          prior_ * kSharePlace * kPlaceAfter * std::pow(kGuessStep, offspring_made_++) * (1 + 3 * run.observables);
      if (std::unique_ptr<Move> move = place_move(world_, tried.schedule, fault_.id, prior))
        offspring_.moves.push_back(std::move(move));
    }
  }

  std::vector<std::unique_ptr<Move>> offspring() override { return std::exchange(offspring_.moves, {}); }

 private:
  enum class Kind { guess, new_action, time };
  struct Proposed {
    Kind kind = Kind::guess;
    Trial what;
  };
  struct Action {
    Condition condition;
    std::uint64_t times = 0;
    std::int64_t first_ns = 0;  // timestamp of its first occurrence
  };

  std::vector<Proposed>::iterator best() {
    return std::max_element(proposed_.begin(), proposed_.end(),
                            [](const Proposed& a, const Proposed& b) { return a.what.yield < b.what.yield; });
  }

  void add(Kind kind, std::vector<Fault> faults, double yield, int level, std::string why) {
    Proposed& proposed = proposed_.emplace_back();
    proposed.kind = kind;
    proposed.what.schedule.name = world_.config->name;
    proposed.what.schedule.faults = std::move(faults);
    proposed.what.yield = yield;
    proposed.what.level = level;
    proposed.what.why = std::move(why);
  }

  static Fault in_time(Fault fault, std::int64_t ns, const std::string& after) {
    if (!after.empty()) fault.after = {after};
    fault.when = {Condition::elapsed(rounded(ns))};
    return fault;
  }

  Fault guess(FaultKind kind, const std::string& node) const {
    Fault fault;
    fault.kind = kind;
    fault.node = node;
    fault.duration_ns = duration_;
    fault.id = fmt::format("{}-{}-before", kind == FaultKind::pause ? "pause" : "cut", node);
    while (world_.candidate(fault.id) != nullptr) fault.id += "-2";
    return fault;
  }

  // Proposes the guesses. A partition of the node of the logged fault comes first. If only two nodes have a network of
  // their own, a partition of either has the same effect, so only one is proposed.
  void guesses(const std::vector<config::Node>& nodes) {
    std::vector<Fault> partitions, pauses;
    const config::Node* own = world_.config->find(fault_.node);
    const std::string& network = own == nullptr || own->network_of.empty() ? fault_.node : own->network_of;
    const auto networks =
        std::count_if(nodes.begin(), nodes.end(), [](const auto& other_node) { return other_node.network_of.empty(); });
    if (networks > 1) partitions.push_back(guess(FaultKind::partition, network));
    for (const config::Node& node : nodes) {
      if (networks > 2 && node.network_of.empty() && node.name != network)
        partitions.push_back(guess(FaultKind::partition, node.name));
      if (node.name == fault_.node) continue;
      pauses.push_back(guess(FaultKind::pause, node.name));
    }
    double yield = kShareGuessBefore * prior_;
    for (const std::vector<Fault>* of : {&partitions, &pauses})
      for (const Fault& fault : *of) {
        if (proposed_.size() >= kMostBefore) break;
        add(Kind::guess, {in_time(fault, begin_, "")}, yield, 1,
            fmt::format("no log shows what preceded {}: a guess", fault_.id));
        yield *= kGuessStep;
      }
    // Two guesses at once, and the logged fault while both last. Partitions of other nodes come first, because the log
    // of the node with the logged fault need not report these partitions.
    yield = kShareTwoGuesses * prior_;
    std::size_t pairs = 0;
    std::rotate(partitions.begin(), partitions.begin() + (partitions.empty() ? 0 : 1), partitions.end());
    for (const Fault& partition : partitions)
      for (const Fault& pause : pauses) {
        if (partition.node == pause.node || nodes.size() < 3 || ++pairs > kMostPairs) continue;
        add(Kind::time,
            {in_time(partition, begin_, ""), in_time(pause, duration_ / 4, partition.id),
             in_time(fault_, duration_ / 4, pause.id)},
            yield, 1, fmt::format("no log shows what preceded {}: two guesses at once", fault_.id));
        yield *= kGuessStep;
      }
  }

  // The actions of the node in the trace from time `since` on, by key of their condition.
  std::map<std::string, Action> actions_of(const trace::Trace& trace, std::int64_t since) const {
    std::map<std::string, Action> found;
    for (const trace::Event& event : trace.events) {
      if (event.ts_ns < since || (event.flags & trace::kInjected) != 0) continue;
      if (event.type != trace::EventType::af && event.type != trace::EventType::sys) continue;
      if ((event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node)) != fault_.node) continue;
      const std::optional<ContextEvent> made = context_event(trace, event, fault_.node);
      if (!made) continue;
      Action& action = found[made->key];
      if (action.times++ == 0) {
        action.condition = made->condition;
        action.first_ns = event.ts_ns;
      }
    }
    return found;
  }

  void after_guess(const Fault& fault, const FaultOutcome& outcome, const TrialOutcome& run) {
    const RunResult& result = *run.result;
    const double prior = prior_ * (1 + 3 * run.observables);  // higher if observables of the logs occurred
    double yield = kShareAfterGuess * prior;
    if (run.fresh && result.trace.meta.workload_ts != 0)
      for (const Action& action : new_actions(result.trace, result.trace.meta.workload_ts + outcome.fired_ns)) {
        Fault last = fault_;
        last.after = {fault.id};
        last.when = {action.condition};
        add(Kind::new_action, {fault, std::move(last)}, yield, 2,
            fmt::format("{} after {}, once {} does something that it never does without faults: {}", fault_.id,
                        fault.id, fault_.node, context_words(action.condition)));
        yield *= kGuessStep;
      }
    for (const bool during : {true, false})
      add(Kind::time, {fault, in_time(fault_, during ? duration_ / 2 : duration_ + duration_ / 8, fault.id)},
          kByTime * kShareGuessBefore * prior, 1,
          fmt::format("{} {} {}, which no log shows", fault_.id, during ? "during" : "right after", fault.id));
  }

  // The actions after time `since` that the node never does without faults, then those that it does more often than
  // without faults, each ordered by time.
  std::vector<Action> new_actions(const trace::Trace& trace, std::int64_t since) const {
    std::vector<std::pair<std::pair<bool, std::int64_t>, Action>> found;
    const std::map<std::string, Action> whole = actions_of(trace, 0);
    for (auto& [key, action] : actions_of(trace, since)) {
      const auto usual = usual_.find(key);
      if (usual != usual_.end() && whole.at(key).times <= usual->second.times) continue;
      found.emplace_back(std::pair(usual != usual_.end(), action.first_ns), action);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Action> new_actions;
    for (auto& [order, action] : found)
      if (new_actions.size() < kMostNewActions) new_actions.push_back(std::move(action));
    return new_actions;
  }

  const World& world_;
  Fault fault_;
  const double prior_;
  std::int64_t begin_ = 0, duration_ = 0;  // time and duration of guesses, ns
  std::map<std::string, Action> usual_;    // actions in the run without faults
  std::vector<Proposed> proposed_;
  Proposed running_;
  bool pending_ = false;
  int offspring_made_ = 0;
  Offspring offspring_;
};

}  // namespace

Moves before_moves(const World& world) {
  Moves moves;
  const Inputs& inputs = *world.inputs;
  // Make no such guesses if there are dumps, because dumps show what preceded a fault.
  if (inputs.recorded() || world.config->nodes.size() < 2 || !world.uses("before")) return moves;
  for (const Candidate* c : by_weight(world.plan)) {
    if (moves.size() >= kMostLoggedEnds) break;
    if (is_logged_end(*c)) moves.push_back(std::make_unique<BeforeMove>(world, *c));
  }
  return moves;
}

}  // namespace rose::diagnose
