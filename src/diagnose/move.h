// A move is a generator of trials of one kind for some candidates: fail the nth call, wait for a context, stop at an
// instruction, arm many faults at once. It proposes its next trial with an estimate of the probability that this trial
// reproduces the bug, and the search runs the best trial of all moves. Private to diagnose.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/context.h"
#include "diagnose/diagnose.h"
#include "diagnose/survey.h"
#include "diagnose/thresholds.h"
#include "diagnose/words.h"

namespace rose::diagnose {

// The input of all moves. The search updates `missed_in_group` and `factors` after runs; the rest does not change.
struct World {
  const Inputs* inputs = nullptr;
  const config::Config* config = nullptr;
  Plan plan;
  std::int64_t workload_ns = 0;  // duration of the workload without faults; 0: unknown
  Survey survey;
  std::optional<ContextIndex> contexts;
  std::map<std::string, int> node_numbers;
  // ids of faults that were effective among many others in a run that did not reproduce the bug
  std::set<std::string, std::less<>> missed_in_group;

  // The factors by which runs have changed the weights of candidates, by fault id; without an entry: 1.
  std::map<std::string, double, std::less<>> factors;

  // The mean of the factors of the schedule's faults.
  [[nodiscard]] double average_factor(const schedule::Schedule& schedule) const;
  // False if --without switches that part of the method off.
  [[nodiscard]] bool uses(std::string_view part) const { return !inputs->without.contains(std::string(part)); }
  // True if trials of that level are allowed (`levels` in [diagnose]).
  [[nodiscard]] bool level(int level) const;
  [[nodiscard]] const Candidate* candidate(std::string_view fault_id) const;
};

// A schedule that a move proposes to run.
struct Trial {
  schedule::Schedule schedule;
  std::string why;  // for people: "all process and network faults, in their order, at the observed time"
  int level = 1;
  double yield = 0;          // estimated probability that a run reproduces the bug; only ratios matter
  bool repeat = false;       // another run of a schedule that missed, because a miss may be due to chance
  bool exploratory = false;  // an exploratory run: its faults only count events and never fire (counter_for())
  bool many = false;   // it has more faults or calls than are needed: a hit is narrowed down before it is confirmed
  std::string moment;  // the moment at which its fault is expected to fire (moment_in()); "": unknown
};

// The outcome of a trial, from which its move learns.
struct TrialOutcome {
  const schedule::RunResult* result = nullptr;  // without its trace if not `fresh`
  bool fresh = true;                            // false: the run was made earlier, for another move
  // share of the evidence's observables that occurred, weighted by priority (Feedback::share())
  double observables = 0;
};

// Trials are shared, because the search compares the next trials of all moves before each run, and copying the long
// schedules of exploratory runs takes time.
using NextTrial = std::shared_ptr<const Trial>;

class Move {
 public:
  virtual ~Move() = default;
  // The next trial; nullptr if there is none, or if the move has to learn the outcome of a running trial first.
  [[nodiscard]] virtual NextTrial peek() = 0;
  // Marks the trial that peek() returned as started.
  virtual void take() = 0;
  // The best trials that do not depend on each other's outcomes. Each of them may be taken next by take_one().
  [[nodiscard]] virtual std::vector<NextTrial> peek_all() {
    NextTrial next = peek();
    return next == nullptr ? std::vector<NextTrial>{} : std::vector<NextTrial>{std::move(next)};
  }
  // Marks a trial of peek_all() as started; returns false if the move does not propose it any more.
  [[nodiscard]] virtual bool take_one(const Trial& wanted) {
    const NextTrial next = peek();
    if (next == nullptr || schedule::fingerprint(next->schedule) != schedule::fingerprint(wanted.schedule))
      return false;
    take();
    return true;
  }
  // Learns the outcome of a trial. Called for every trial that was taken, in the order in which they were taken.
  virtual void learn(const Trial& tried, const TrialOutcome& run) = 0;
  // New moves that the outcomes suggest. Each is returned only once.
  [[nodiscard]] virtual std::vector<std::unique_ptr<Move>> offspring() { return {}; }
  // A copy for forecasts. What the copy learns does not affect the original.
  [[nodiscard]] virtual std::unique_ptr<Move> clone() const = 0;
  // For people: trials that the move could not make, with the reason; "" if there are none.
  [[nodiscard]] virtual std::string left_out() const { return {}; }
};

using Moves = std::vector<std::unique_ptr<Move>>;

// The moves that offspring() will return. A copy is empty, because a cloned move must not return the same moves again.
struct Offspring {
  Moves moves;
  Offspring() = default;
  Offspring(const Offspring&) {}
  Offspring& operator=(const Offspring&) = delete;
};

// --- moves and trials; each file of move/ has one kind

// Level 1: the faults as they were observed, in their order, with their spacing and durations; a failed call is tried
// alone, together with the calls of the same root cause, and together with the other faults.
[[nodiscard]] std::vector<Trial> plain_trials(const World& world);
[[nodiscard]] std::unique_ptr<Move> plain_move(const World& world, std::vector<Trial> trials);
// The times after the workload's start at which a fault of unknown time is tried, in nanoseconds, the most likely first
// (weights kPointFirst, ...).
[[nodiscard]] std::vector<std::int64_t> points_of_workload(std::int64_t length_ns);
// For a schedule that reproduced the bug too rarely and starts at a fixed time: the same schedule at other times. If
// the test machine is slower or faster than production, the system is in another state at the observed time.
[[nodiscard]] std::vector<Trial> other_times(const World& world, const schedule::Schedule& lead);
// The schedule with longer pauses and partitions, if their durations come only from logs.
[[nodiscard]] std::vector<Trial> other_lengths(const World& world, const schedule::Schedule& lead);
// The schedule on other nodes that a production host may correspond to.
[[nodiscard]] std::vector<Schedule> on_replicas(const World& world, const Schedule& schedule);
// The most likely of `trials`, on other replicas.
[[nodiscard]] std::vector<Trial> replica_trials(const World& world, const std::vector<Trial>& trials);
// Level 1: many failed calls in one run, each of them unlikely to be the cause. If the run reproduces the bug,
// bisection finds the call that matters.
[[nodiscard]] std::unique_ptr<Move> call_group_move(const World& world);
// Level 2: a fault at the nth matching call. Ranges of n and single values of n are tried.
[[nodiscard]] Moves nth_moves(const World& world);
// `id`: the fault of `base` whose count is varied. `prior`: the probability that one of the matching calls is the one
// whose failure causes the bug.
[[nodiscard]] std::unique_ptr<Move> nth_move(const World& world, const schedule::Schedule& base, const std::string& id,
                                             double prior, std::string why);
// Levels 1 and 2: less common forms of a fault, which the evidence only suggests.
[[nodiscard]] std::vector<Trial> rare_trials(const World& world);
// Level 1: the real limits that explain calls which fail for lack of a resource, processes that were ended for lack of
// memory, and waits for disks. `lead`: a schedule that reproduced the bug too rarely; its faults are then replaced by
// the limits that explain them, and no other limits are tried.
[[nodiscard]] std::vector<Trial> limit_trials(const World& world, const schedule::Schedule* lead = nullptr);
// Level 2: faults that wait for their context, that is, the events that preceded them. Level 3 (place_move()) follows.
// `lead`: a schedule that reproduced the bug too rarely; then only its faults are refined.
[[nodiscard]] Moves context_moves(const World& world, const schedule::Schedule* lead = nullptr);
// Levels 1 and 2, for evidence from logs: faults that no log reports, before a logged fault.
[[nodiscard]] Moves before_moves(const World& world);
// Level 2: a failed call after the events that preceded it on its node.
[[nodiscard]] std::vector<Trial> call_context_trials(const World& world);
// Level 2: a process or network fault at the event that another node produced right before it. The failure may depend
// on what another node was doing: a follower's sync, a worker's request. `lead`: as for context_moves().
[[nodiscard]] std::vector<Trial> elsewhere_trials(const World& world, const schedule::Schedule* lead = nullptr);
// Level 3: moves a fault to the places that its node reaches after the fault's context. `reached`: a schedule whose
// context was met. `fired`: the id of its fault that fired. nullptr if that fault cannot be moved.
[[nodiscard]] std::unique_ptr<Move> place_move(const World& world, const schedule::Schedule& reached,
                                               const std::string& fired, double prior);
// The questions whose answers place moves need, so that a survey can ask them. place_questions_ahead(): for the first
// contexts of the most likely faults. place_questions(): for this fault and its context.
[[nodiscard]] std::vector<Question> place_questions_ahead(const World& world);
[[nodiscard]] std::vector<Question> place_questions(const World& world, const schedule::Fault& fault);

// --- helpers

// Shuffles each sequence of neighbouring elements that `same` considers equal. `seed` 1 keeps the order.
template <class T, class Same>
void order_equals(std::vector<T>& all, std::uint64_t seed, Same same) {
  if (seed == 1) return;
  std::mt19937_64 dice(seed);
  for (std::size_t from = 0, to = 0; from < all.size(); from = to) {
    for (to = from + 1; to < all.size() && same(all[from], all[to]);) ++to;
    for (std::size_t left = to - from; left > 1; --left) std::swap(all[from + left - 1], all[from + dice() % left]);
  }
}

class Lab;
// The yield of the trial divided by its cost: the search runs the trial with the highest value.
[[nodiscard]] double worth_of(const World& world, const Lab& lab, const Trial& t);
// The candidates by weight, the highest first; equal ones in the paper's order.
[[nodiscard]] std::vector<const Candidate*> by_weight(const Plan& plan);
// The outcome of the fault with this id; nullptr if the result has none.
[[nodiscard]] const schedule::FaultOutcome* outcome_of(const schedule::RunResult& result, std::string_view id);
// True if all conditions of the fault are times, or if it has none.
[[nodiscard]] bool waits_only_for_time(const schedule::Fault& fault);
// The condition for the candidate's time after the start of the workload, limited to the first half of the workload; no
// condition if the time is unknown.
[[nodiscard]] std::vector<schedule::Condition> when_observed(const World& world, const Candidate& candidate);
// For people: "f" or "rename(*/epoch)".
[[nodiscard]] std::string context_words(const schedule::Condition& condition);
// True if calls of this node can be made to fail. The kernel's override works for any process; the other backend needs
// a node that rose starts (config::Node::entered_by_rose()).
[[nodiscard]] bool can_fail_calls(const Inputs& inputs, std::string_view node);
// True if calls of this node can be delayed or executed in part. Only the backend in userspace can do that.
[[nodiscard]] bool can_delay_calls(const Inputs& inputs, std::string_view node);

}  // namespace rose::diagnose
