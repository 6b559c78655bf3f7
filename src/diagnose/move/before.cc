// Levels 1 and 2, from logs alone: guesses about unlogged faults that preceded the logged one. A node that reports its
// kill does not report that it was partitioned before, or that another node was paused. Each guess is run alone; what
// the node then does that it never does without faults marks a state in which a kill may matter, so the logged fault
// waits for that. Then by time: while the guessed fault lasts, after it, and with two guesses at once.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/units.h"
#include "diagnose/forms.h"
#include "diagnose/move.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostPlainEnds = 2;  // faults that logs mention
constexpr std::size_t kMostBefore = 12;    // before each
constexpr std::size_t kMostPairs = 12;
constexpr std::size_t kMostNews = 12;  // things that the node does only under the guessed fault

bool is_plain_end(const Candidate& c) {
  return (c.kind == FaultKind::crash || c.kind == FaultKind::pause) && c.plainness >= kLeastReported && !c.symptom;
}

class BeforeMove final : public Move {
 public:
  BeforeMove(const World& world, const Candidate& candidate)
      : world_(world), fault_(candidate.fault), belief_(candidate.weight) {
    fault_.after.clear();
    fault_.when.clear();
    const std::int64_t length = world.workload_ns > 0 ? world.workload_ns : world.plan.end_ts - world.plan.begin_ts;
    begin_ = points_of_workload(length).front();
    duration_ = rounded(std::clamp(length / 4, kShortBefore, kLongBefore));
    usual_ = actions_of(world.survey.trace, 0);
    guesses(world.config->nodes);
  }

  NextTry peek() override {
    if (under_way_ || waiting_.empty()) return nullptr;
    Try t = best()->what;
    t.yield *= world_.believed(t.schedule);
    return std::make_shared<const Try>(std::move(t));
  }

  void take() override {
    const auto at = best();
    asked_ = *at;
    waiting_.erase(at);
    under_way_ = true;
  }

  std::unique_ptr<Move> clone() const override { return std::make_unique<BeforeMove>(*this); }

  void learn(const Try& tried, const Shown& shown) override {
    under_way_ = false;
    const RunResult& result = *shown.result;
    if (asked_.kind == Kind::guess) {
      const FaultOutcome* outcome = outcome_of(result, tried.schedule.faults[0].id);
      if (outcome != nullptr && outcome->fired) after_guess(tried.schedule.faults[0], *outcome, shown);
      return;
    }
    const FaultOutcome* outcome = outcome_of(result, fault_.id);
    if (asked_.kind == Kind::news && outcome != nullptr && outcome->fired && result.oracle == OracleAnswer::miss &&
        world_.level(3)) {
      const double belief =
          belief_ * kSharePlace * kPlaceAfter * std::pow(kGuessStep, offspring_made_++) * (1 + 3 * shown.observables);
      if (std::unique_ptr<Move> move = place_move(world_, tried.schedule, fault_.id, belief))
        offspring_.moves.push_back(std::move(move));
    }
  }

  std::vector<std::unique_ptr<Move>> offspring() override { return std::exchange(offspring_.moves, {}); }

 private:
  enum class Kind { guess, news, time };
  struct Waiting {
    Kind kind = Kind::guess;
    Try what;
  };
  struct Doing {
    Condition condition;
    std::uint64_t times = 0;
    std::int64_t first_ns = 0;
  };

  std::vector<Waiting>::iterator best() {
    return std::max_element(waiting_.begin(), waiting_.end(),
                            [](const Waiting& a, const Waiting& b) { return a.what.yield < b.what.yield; });
  }

  void add(Kind kind, std::vector<Fault> faults, double yield, int level, std::string why) {
    Waiting& waiting = waiting_.emplace_back();
    waiting.kind = kind;
    waiting.what.schedule.name = world_.config->name;
    waiting.what.schedule.faults = std::move(faults);
    waiting.what.yield = yield;
    waiting.what.level = level;
    waiting.what.why = std::move(why);
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

  // Guesses about the node itself first; with two nodes, partitioning either is the same.
  void guesses(const std::vector<config::Node>& nodes) {
    std::vector<Fault> cuts, pauses;
    const config::Node* own = world_.config->find(fault_.node);
    const std::string& network = own == nullptr || own->network_of.empty() ? fault_.node : own->network_of;
    const auto networks =
        std::count_if(nodes.begin(), nodes.end(), [](const auto& other_node) { return other_node.network_of.empty(); });
    if (networks > 1) cuts.push_back(guess(FaultKind::partition, network));
    for (const config::Node& node : nodes) {
      if (networks > 2 && node.network_of.empty() && node.name != network)
        cuts.push_back(guess(FaultKind::partition, node.name));
      if (node.name == fault_.node) continue;
      pauses.push_back(guess(FaultKind::pause, node.name));
    }
    double yield = kShareGuessBefore * belief_;
    for (const std::vector<Fault>* of : {&cuts, &pauses})
      for (const Fault& fault : *of) {
        if (waiting_.size() >= kMostBefore) break;
        add(Kind::guess, {in_time(fault, begin_, "")}, yield, 1,
            fmt::format("no log shows what preceded {}: a guess", fault_.id));
        yield *= kGuessStep;
      }
    // Two guesses, and the logged fault while both last; guesses about other nodes first, because the log of this node
    // does not report those.
    yield = kShareTwoGuesses * belief_;
    std::size_t pairs = 0;
    std::rotate(cuts.begin(), cuts.begin() + (cuts.empty() ? 0 : 1), cuts.end());
    for (const Fault& cut : cuts)
      for (const Fault& pause : pauses) {
        if (cut.node == pause.node || nodes.size() < 3 || ++pairs > kMostPairs) continue;
        add(Kind::time,
            {in_time(cut, begin_, ""), in_time(pause, duration_ / 4, cut.id), in_time(fault_, duration_ / 4, pause.id)},
            yield, 1, fmt::format("no log shows what preceded {}: two guesses at once", fault_.id));
        yield *= kGuessStep;
      }
  }

  // What the node of the given fault does after it, by the key of a condition.
  std::map<std::string, Doing> actions_of(const trace::Trace& trace, std::int64_t since) const {
    std::map<std::string, Doing> found;
    for (const trace::Event& event : trace.events) {
      if (event.ts_ns < since || (event.flags & trace::kInjected) != 0) continue;
      if (event.type != trace::EventType::af && event.type != trace::EventType::sys) continue;
      if ((event.node != 0 ? trace.str(event.node) : std::string_view(trace.meta.node)) != fault_.node) continue;
      const std::optional<ContextEvent> made = context_event(trace, event, fault_.node);
      if (!made) continue;
      Doing& doing = found[made->key];
      if (doing.times++ == 0) {
        doing.condition = made->condition;
        doing.first_ns = event.ts_ns;
      }
    }
    return found;
  }

  void after_guess(const Fault& fault, const FaultOutcome& outcome, const Shown& shown) {
    const RunResult& result = *shown.result;
    const double belief = belief_ * (1 + 3 * shown.observables);  // it brought back observables of the logs
    double yield = kShareAfterGuess * belief;
    if (shown.fresh && result.trace.meta.workload_ts != 0)
      for (const Doing& doing : news(result.trace, result.trace.meta.workload_ts + outcome.fired_ns)) {
        Fault last = fault_;
        last.after = {fault.id};
        last.when = {doing.condition};
        add(Kind::news, {fault, std::move(last)}, yield, 2,
            fmt::format("{} after {}, once {} does something that it never does without faults: {}", fault_.id,
                        fault.id, fault_.node, context_words(doing.condition)));
        yield *= kGuessStep;
      }
    for (const bool during : {true, false})
      add(Kind::time, {fault, in_time(fault_, during ? duration_ / 2 : duration_ + duration_ / 8, fault.id)},
          kByTime * kShareGuessBefore * belief, 1,
          fmt::format("{} {} {}, which no log shows", fault_.id, during ? "during" : "right after", fault.id));
  }

  // First what the node never does otherwise, then what it does more often than otherwise, each in order of time.
  std::vector<Doing> news(const trace::Trace& trace, std::int64_t since) const {
    std::vector<std::pair<std::pair<bool, std::int64_t>, Doing>> found;
    const std::map<std::string, Doing> whole = actions_of(trace, 0);
    for (auto& [key, doing] : actions_of(trace, since)) {
      const auto usual = usual_.find(key);
      if (usual != usual_.end() && whole.at(key).times <= usual->second.times) continue;
      found.emplace_back(std::pair(usual != usual_.end(), doing.first_ns), doing);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Doing> news;
    for (auto& [order, doing] : found)
      if (news.size() < kMostNews) news.push_back(std::move(doing));
    return news;
  }

  const World& world_;
  Fault fault_;
  const double belief_;
  std::int64_t begin_ = 0, duration_ = 0;  // of guesses
  std::map<std::string, Doing> usual_;     // of a run without faults
  std::vector<Waiting> waiting_;
  Waiting asked_;
  bool under_way_ = false;
  int offspring_made_ = 0;
  Offspring offspring_;
};

}  // namespace

Moves before_moves(const World& world) {
  Moves moves;
  const Inputs& inputs = *world.inputs;
  // A dump already contains what came before.
  if (!inputs.only_logs() || world.config->nodes.size() < 2 || !world.uses("before")) return moves;
  for (const Candidate* c : by_weight(world.plan)) {
    if (moves.size() >= kMostPlainEnds) break;
    if (is_plain_end(*c)) moves.push_back(std::make_unique<BeforeMove>(world, *c));
  }
  return moves;
}

}  // namespace rose::diagnose
