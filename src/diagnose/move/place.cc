// Level 3: places after the context. A crash or pause whose context was met, or that reproduced the bug at a fixed time
// but too rarely, is moved in two ways, alternately: to the instructions of the last function of the context (system
// calls first, then other calls, then the rest), and to the 1st, 2nd, ... system call after the last event of the
// context. The second way needs no symbols, so it also works for interpreted and stripped programs.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "diagnose/code.h"
#include "diagnose/move.h"
#include "diagnose/stops.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostPlaces = 96;  // trials inside one function
// of kMostPlaces: trials at instructions that are not calls; a fault there has an effect only at the next call
constexpr std::size_t kMostRest = 32;
constexpr std::size_t kMostExplored = 32;  // places of a function that one exploratory run counts
constexpr std::size_t kFewPlaces = 3;      // this many places are tried without another exploratory run
constexpr std::uint64_t kMostPasses = 4;   // passes of a place in a loop that are tried

// True if the fault can wait for a further condition after its context.
bool movable(const Fault& fault) {
  return (fault.kind == FaultKind::crash || fault.kind == FaultKind::pause) && !fault.before && !fault.when.empty();
}

// The last function in the context of the fault; "" if there is none.
std::string function_of(const Fault& fault) {
  std::string function;
  for (const Condition& c : fault.when)
    if (c.kind == ConditionKind::function && !c.offset) function = c.function;
  return function;
}

Condition place_condition(const std::string& function, const CodePlace& place) {
  Condition at;
  at.kind = ConditionKind::function;
  at.function = function;
  at.offset = place.offset;
  return at;
}

// Counts the entries of the function, to distinguish passes of a loop from further calls of the function.
Condition entry_condition(const std::string& function) {
  Condition entry;
  entry.kind = ConditionKind::function;
  entry.function = function;
  return entry;
}

// True if the place can be counted. In a hot loop, counting would take longer than the rest of the run, except at
// system calls, to whose cost counting adds little.
bool countable(const CodePlace& place) { return place.kind == PlaceKind::syscall || !place.loop; }

// The indexes of the next places from `known` on; advances `known`. `rest`: also instructions that are not calls.
std::vector<std::size_t> chunk_of(const std::vector<CodePlace>& places, std::size_t& known, bool rest) {
  std::vector<std::size_t> chunk;
  while (known < places.size() && chunk.size() < kMostExplored && (rest || places[known].kind != PlaceKind::other))
    chunk.push_back(known++);
  return chunk;
}

struct PlaceQuestions {
  std::vector<std::pair<std::size_t, Question>> places;  // index of the place, and its question
  std::optional<Question> entry;
  std::vector<Question> calls;  // one for each of Stops::kinds()
};

PlaceQuestions questions_of(const Fault& fault, const std::vector<CodePlace>& places,
                            const std::vector<std::size_t>& chunk, const Stops* stops) {
  PlaceQuestions found;
  const std::string function = function_of(fault);
  for (const std::size_t place : chunk)
    if (countable(places[place]))
      found.places.push_back({place, {fault.node, fault.when, place_condition(function, places[place])}});
  if (!found.places.empty()) found.entry = Question{fault.node, fault.when, entry_condition(function)};
  if (stops != nullptr)
    for (const schedule::CallMatch& kind : stops->kinds())
      found.calls.push_back({fault.node, fault.when, call_condition(kind)});
  return found;
}

class PlaceMove final : public Move {
 public:
  PlaceMove(const World& world, const Schedule& reached, const std::string& fired, double prior)
      : world_(world), base_(reached), prior_(prior) {
    const Fault* moved = base_.find(fired);
    if (moved == nullptr || !movable(*moved)) return;
    for (const Fault& fault : base_.faults)
      if (fault.id == fired || (!moved->group.empty() && fault.group == moved->group)) moved_.insert(fault.id);
    stops_ = Stops(&world.survey.trace, *moved);
    function_ = function_of(*moved);
    if (!function_.empty()) read_places(world.inputs->code, moved->node);
    chunk_ = chunk_of(places_, known_, false);
    explore_next_ = Explore::both;
    if (moved_.size() == base_.faults.size()) answer_from_survey();
  }

  NextTrial peek() override {
    if (ended_ || moved_.empty() || (!running_.empty() && running_.back().what == What::exploration)) return nullptr;
    if (explore_next_ != Explore::none) return exploration();
    const bool place_first = !place_was_last_;
    for (int attempt = 0; attempt < 2; ++attempt) {
      if ((attempt == 0) == place_first) {
        if (NextTrial t = next_place(false)) return t;
        if (explore_next_ != Explore::none) return exploration();
      } else if (NextTrial t = next_stop()) {
        return t;
      }
    }
    NextTrial t = next_place(true);
    if (!t && explore_next_ != Explore::none) return exploration();
    return t;
  }

  void take() override {
    const NextTrial next = peek();
    if (!next) return;
    if (next->exploratory) {
      running_.push_back({What::exploration, {}});
      explores_calls_ = explore_next_ == Explore::both;
      explore_next_ = Explore::none;
      exploration_.reset();
      return;
    }
    ++tried_;
    if (is_place_) {
      const Step step = steps_.front();
      steps_.pop_front();
      ++trials_;
      if (places_[step.place].kind == PlaceKind::other) ++rest_trials_;
      running_.push_back({What::place, step});
      place_was_last_ = true;
    } else {
      (void)stops_.next();
      running_.push_back({What::stop, {}});
      place_was_last_ = false;
    }
  }

  std::unique_ptr<Move> clone() const override { return std::make_unique<PlaceMove>(*this); }

  void learn(const Trial&, const TrialOutcome& run) override {
    if (running_.empty()) return;
    const Running asked = running_.front();
    running_.pop_front();
    const RunResult& result = *run.result;
    if (run.observables > 0 && fired(result)) prior_ *= 1 + run.observables;
    switch (asked.what) {
      case What::exploration: learn_exploration(result); return;
      case What::place: learn_place(asked.step, result); return;
      case What::stop: learn_stop(result); return;
    }
  }

  [[nodiscard]] std::string left_out() const override {
    if (no_places_why_.empty()) return {};
    return fmt::format(
        "level 3 stopped nodes at the system calls that follow their context, not at places inside functions: {}",
        no_places_why_);
  }

 private:
  enum class What { exploration, place, stop };  // kinds of trials
  enum class Explore { none, places, both };
  // The nth pass of a place of the function; `place`: index into places_.
  struct Step {
    std::size_t place = 0;
    std::uint64_t pass = 1;
  };
  struct Running {
    What what = What::stop;
    Step step;
  };

  [[nodiscard]] bool fired(const RunResult& result) const {
    return std::any_of(result.faults.begin(), result.faults.end(),
                       [&](const FaultOutcome& outcome) { return outcome.fired && moved_.contains(outcome.id); });
  }

  double yield() const { return prior_ * world_.average_factor(base_) * kPlaceFirst * std::pow(kPlaceStep, tried_); }

  Trial trial_of(std::string why) const {
    Trial t;
    t.level = 3;
    t.schedule = base_;
    t.yield = yield();
    t.why = std::move(why);
    return t;
  }

  // --- the system calls that follow the context

  NextTrial next_stop() {
    const Stop* stop = stops_.front();
    if (stop == nullptr) return nullptr;
    is_place_ = false;
    const std::string object = stop->call.path.value_or(stop->call.peer.value_or(""));
    Trial t = trial_of(fmt::format("in its context, but only at {}({}){}", stop->call.syscall, object,
                                   stop->count > 1 ? fmt::format(", number {}", stop->count) : ""));
    for (Fault& fault : t.schedule.faults) {
      if (!moved_.contains(fault.id)) continue;
      fault.before = stop->call;
      fault.before_count = stop->count;
    }
    return std::make_shared<const Trial>(std::move(t));
  }

  void learn_stop(const RunResult& result) {
    if (result.oracle == OracleAnswer::unknown) return;
    // If the context was not met, no later call can be reached either.
    ended_ = ended_ || std::none_of(result.faults.begin(), result.faults.end(), [&](const FaultOutcome& outcome) {
               return moved_.contains(outcome.id) && (outcome.armed || outcome.fired);
             });
  }

  // --- inside the function

  void read_places(CodeMap* code, const std::string& node) {
    if (code == nullptr) {
      no_places_why_ = "the nodes' programs were not read";
      return;
    }
    Result<std::vector<CodePlace>> places = code->places(node, function_);
    if (!places) {
      no_places_why_ = places.error().message;
      return;
    }
    places_ = *std::move(places);
    if (places_.empty()) no_places_why_ = "only its first instruction is known";
  }

  [[nodiscard]] std::size_t countable_places() const {
    return static_cast<std::size_t>(
        std::count_if(chunk_.begin(), chunk_.end(), [&](std::size_t place) { return countable(places_[place]); }));
  }

  // The next trial inside the function; nullptr if there is none, or if an exploratory run should come first
  // (explore_next_). `rest`: also at instructions that are not calls.
  NextTrial next_place(bool rest) {
    if (trials_ >= kMostPlaces || rest_trials_ >= kMostRest) return nullptr;
    if (steps_.empty()) {
      chunk_ = chunk_of(places_, known_, rest);
      if (chunk_.empty()) return nullptr;
      if (exploring_helps_ && countable_places() > kFewPlaces) {
        explore_next_ = Explore::places;
        return nullptr;
      }
      plan_steps({});
      if (steps_.empty()) return nullptr;
    }
    is_place_ = true;
    const Step step = steps_.front();
    const CodePlace& place = places_[step.place];
    Trial t = trial_of(fmt::format("in its context, but only at {} in {} (+{:#x}){}", place.name, function_,
                                   place.offset, step.pass > 1 ? fmt::format(", time {}", step.pass) : ""));
    for (Fault& fault : t.schedule.faults) {
      if (!moved_.contains(fault.id)) continue;
      fault.when.push_back(place_condition(function_, place));
      fault.when.back().count = static_cast<int>(step.pass);
    }
    return std::make_shared<const Trial>(std::move(t));
  }

  // Learns the outcome of a trial whose last condition was the place.
  void learn_place(const Step& tried, const RunResult& result) {
    if (fired(result) || result.oracle == OracleAnswer::unknown) return;
    if (!context_met(result)) {
      ended_ = true;
      return;
    }
    // The context was met, but the node passed this place less often: later passes will not be reached.
    std::erase_if(steps_, [&](const Step& step) { return step.place == tried.place; });
  }

  [[nodiscard]] bool context_met(const RunResult& result) const {
    return std::any_of(result.faults.begin(), result.faults.end(), [&](const FaultOutcome& outcome) {
      return moved_.contains(outcome.id) &&
             (outcome.conditions.empty() || std::all_of(outcome.conditions.begin(), outcome.conditions.end() - 1,
                                                        [](const schedule::ConditionOutcome& c) { return c.met; }));
    });
  }

  // --- which places and calls are reached after the context. The survey shows this, or else an exploratory run, which
  // injects nothing and only counts. Most code of a function is for other situations and most kinds of calls are never
  // made; without counting, each of them would take a run of its own.

  void answer_from_survey() {
    std::map<std::string, Answer> answers;
    for (const auto& [id, question] : all_questions()) {
      const Answer* answer = world_.survey.find(question);
      if (answer == nullptr) return;
      answers.emplace(id, *answer);
    }
    if (answers.empty()) return;
    explore_next_ = Explore::none;
    explores_calls_ = true;
    use(answers, true);
  }

  static std::string question_id(const std::string& fault, std::string_view what, std::size_t i) {
    return fmt::format("{}-look-{}{}", fault, what, i + 1);
  }

  // The questions for all moved faults, each with the id of its counter.
  std::vector<std::pair<std::string, Question>> all_questions() const {
    std::vector<std::pair<std::string, Question>> all;
    const bool calls = explore_next_ == Explore::both || explores_calls_;
    for (const std::string& id : moved_) {
      const PlaceQuestions questions = questions_of(*base_.find(id), places_, chunk_, calls ? &stops_ : nullptr);
      for (const auto& [place, question] : questions.places) all.emplace_back(question_id(id, "p", place), question);
      if (questions.entry) all.emplace_back(question_id(id, "e", 0), *questions.entry);
      for (std::size_t i = 0; i < questions.calls.size(); ++i)
        all.emplace_back(question_id(id, "c", i), questions.calls[i]);
    }
    return all;
  }

  // The exploratory run. The search requests it at each step, and it has many counters, so it is built only once.
  NextTrial exploration() {
    if (exploration_ == nullptr || exploration_->yield != yield()) {
      Trial next = exploration_ != nullptr ? *exploration_ : make_exploration();
      next.yield = yield();
      exploration_ = std::make_shared<const Trial>(std::move(next));
    }
    return exploration_;
  }

  Trial make_exploration() const {
    const std::size_t worth = countable_places();
    const bool at_calls = explore_next_ == Explore::both;
    const std::string places =
        worth == 0 ? "" : fmt::format("which of {} places in {} the node reaches", worth, function_);
    Trial t = trial_of(fmt::format("a look at {}{}{}", places, at_calls && worth > 0 ? ", and " : "",
                                   at_calls ? "which calls follow" : ""));
    t.exploratory = true;
    std::set<std::string> gone = moved_;  // the moved faults, and those that wait for them
    for (std::size_t grown = 0; grown != gone.size();) {
      grown = gone.size();
      for (const Fault& fault : base_.faults)
        if (std::any_of(fault.after.begin(), fault.after.end(),
                        [&](const std::string& id) { return gone.contains(id); }))
          gone.insert(fault.id);
    }
    std::erase_if(t.schedule.faults, [&](const Fault& fault) { return gone.contains(fault.id); });
    for (const auto& [id, question] : all_questions()) {
      Fault counter = counter_for(question, id);
      for (const std::string& moved : moved_)
        if (id.starts_with(moved + "-look-")) counter.after = base_.find(moved)->after;
      t.schedule.faults.push_back(std::move(counter));
    }
    return t;
  }

  void learn_exploration(const RunResult& result) {
    std::map<std::string, Answer> answers;
    for (const auto& [id, question] : all_questions())
      if (const FaultOutcome* outcome = outcome_of(result, id))
        if (std::optional<Answer> answer = read_answer(question, *outcome)) answers.emplace(id, *answer);
    use(answers, result.oracle != OracleAnswer::unknown);
  }

  // `judged`: the run was conclusive.
  void use(const std::map<std::string, Answer>& answers, bool judged) {
    const bool any_met =
        std::any_of(answers.begin(), answers.end(), [](const auto& entry) { return entry.second.context_met; });
    if (!any_met) {
      // The context was not met, so no place after it can be reached. Without answers, or after an inconclusive run,
      // that is unknown, and the places are tried one by one.
      ended_ = ended_ || (!answers.empty() && judged);
      exploring_helps_ = false;
      plan_steps({});
      return;
    }
    if (explores_calls_) use_calls(answers);
    if (countable_places() > 0) use_places(answers);
    else plan_steps({});
    explores_calls_ = false;
  }

  void use_calls(const std::map<std::string, Answer>& answers) {
    std::vector<Stops::Seen> seen(stops_.kinds().size());
    for (const std::string& id : moved_)
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const auto found = answers.find(question_id(id, "c", i));
        if (found == answers.end() || found->second.times == 0) continue;
        const Answer& answer = found->second;
        const std::int64_t after = answer.first_ns - answer.context_ns;
        seen[i].after_ns = seen[i].times == 0 ? after : std::min(seen[i].after_ns, after);
        seen[i].times = std::max(seen[i].times, answer.times);
      }
    stops_.use_counts(seen);
  }

  void use_places(const std::map<std::string, Answer>& answers) {
    // The highest count of any moved fault; nothing if no context was met.
    const auto passes = [&](std::string_view what, std::size_t i) {
      std::optional<std::uint64_t> most;
      for (const std::string& id : moved_) {
        const auto found = answers.find(question_id(id, what, i));
        if (found != answers.end() && found->second.context_met) most = std::max(most.value_or(0), found->second.times);
      }
      return most;
    };
    const std::uint64_t entries = passes("e", 0).value_or(0);
    std::map<std::size_t, std::uint64_t> times;
    for (const std::size_t place : chunk_) {
      if (!countable(places_[place])) continue;
      const std::uint64_t seen = passes("p", place).value_or(0);
      // Passes of the place for each entry of the function: more than one in a loop.
      times[place] = seen == 0 ? 0 : std::clamp<std::uint64_t>(seen / (entries + 1), 1, kMostPasses);
    }
    plan_steps(times);
  }

  // Plans the trials of the chunk, ordered by kind of place; the first passes of places of one kind come before the
  // second passes. `times`: by place, how often one call of the function passes it; without an entry it is unknown.
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

  const World& world_;
  const Schedule base_;  // the schedule whose context was met
  double prior_;
  std::set<std::string> moved_;    // ids of the faults that are moved: one, or the alternatives of a group
  std::string function_;           // the last function of the context; "": none
  std::vector<CodePlace> places_;  // of function_, best first
  std::string no_places_why_;      // for people: why places_ is empty
  Stops stops_;
  std::deque<Step> steps_;
  std::vector<std::size_t> chunk_;        // the places that are counted or tried now
  std::size_t known_ = 0;                 // number of places that were in a chunk
  std::size_t trials_ = 0;                // trials inside the function
  std::size_t rest_trials_ = 0;           // of trials_: those at instructions that are not calls
  int tried_ = 0;                         // all trials
  std::deque<Running> running_;           // trials that are running, in order
  Explore explore_next_ = Explore::none;  // what the next exploratory run counts
  NextTrial exploration_;                 // that exploratory run; nullptr until it is needed
  bool place_was_last_ = false;
  bool is_place_ = false;        // whether peek() returned a place
  bool explores_calls_ = false;  // the running exploratory run also counts calls
  bool exploring_helps_ = true;  // false after an exploratory run in which no context was met
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Move> place_move(const World& world, const Schedule& reached, const std::string& fired, double prior) {
  const Fault* fault = reached.find(fired);
  if (fault == nullptr || !movable(*fault) || !world.uses("places")) return nullptr;
  return std::make_unique<PlaceMove>(world, reached, fired, prior);
}

std::vector<Question> place_questions(const World& world, const Fault& fault) {
  std::vector<CodePlace> places;
  if (const std::string function = function_of(fault); !function.empty() && world.inputs->code != nullptr)
    if (Result<std::vector<CodePlace>> found = world.inputs->code->places(fault.node, function))
      places = *std::move(found);
  const Stops stops(&world.survey.trace, fault);
  std::size_t known = 0;
  const PlaceQuestions questions = questions_of(fault, places, chunk_of(places, known, false), &stops);
  std::vector<Question> all;
  for (const auto& [place, question] : questions.places) all.push_back(question);
  if (questions.entry) all.push_back(*questions.entry);
  all.insert(all.end(), questions.calls.begin(), questions.calls.end());
  return all;
}

}  // namespace rose::diagnose
