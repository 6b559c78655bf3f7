// A move is one way to refine some candidates: fail the nth call, wait for a context, stop at an instruction, arm many
// at once. It proposes its next trial and estimates how likely that reproduces the bug; the scheduler compares. Private
// to diagnose.
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

// What all moves may read. The search adds what it learns from runs; the rest does not change.
struct World {
  const Inputs* inputs = nullptr;
  const config::Config* config = nullptr;
  Plan plan;
  std::int64_t workload_ns = 0;  // how long the workload takes without faults; 0: not known yet
  Survey survey;
  std::optional<ContextIndex> contexts;
  std::map<std::string, int> node_numbers;
  std::set<std::string> moments;  // moments at which process and network faults fired without reproducing the bug

  // faults that fired among many others in a run that did not reproduce the bug
  std::set<std::string, std::less<>> missed_in_group;

  // The factor by which runs have changed the weight of a candidate, by its fault's id; 1 where there is no entry.
  std::map<std::string, double, std::less<>> factors;

  // The average of the schedule's faults.
  [[nodiscard]] double average_factor(const schedule::Schedule& schedule) const;
  [[nodiscard]] bool uses(std::string_view part) const { return !inputs->without.contains(std::string(part)); }
  [[nodiscard]] bool level(int level) const;
  [[nodiscard]] const Candidate* candidate(std::string_view fault_id) const;
};

struct Trial {
  schedule::Schedule schedule;
  std::string why;  // "all process and network faults, as they were seen"
  int level = 1;
  double yield = 0;     // estimated probability that the run reproduces the bug, with the weights of its candidates as
                        // another run of a schedule that missed
  bool repeat = false;  // another run of a schedule that missed, which may have been chance
  bool exploratory = false;  // it only counts; its faults are not meant to fire
  bool many = false;         // its faults need not belong together: a hit is narrowed down before it is confirmed
  std::string moment;        // at which it is expected to fire; "": unknown
};

// The outcome of a run in the form that moves learn from.
struct TrialOutcome {
  const schedule::RunResult* result = nullptr;  // has its trace only when the run was made just now
  bool fresh = true;                            // false: it was made before, for another move
  double observables = 0;                       // share of the dump's observables that came back
};

// Shared, because the scheduler compares the next trials of all moves before each run, and the schedule of an
// exploratory run is long.
using NextTrial = std::shared_ptr<const Trial>;

class Move {
 public:
  virtual ~Move() = default;
  // The next trial; null if there is none, or if the outcome of a running one is needed first.
  [[nodiscard]] virtual NextTrial peek() = 0;
  // Marks the trial that peek() returned as started.
  virtual void take() = 0;
  // The best trials that do not depend on each other, so that any of them may be taken next, in the form of peek().
  [[nodiscard]] virtual std::vector<NextTrial> peek_all() {
    NextTrial next = peek();
    return next == nullptr ? std::vector<NextTrial>{} : std::vector<NextTrial>{std::move(next)};
  }
  // Marks one of them as started; returns false if the move no longer wants to try it.
  [[nodiscard]] virtual bool take_one(const Trial& wanted) {
    const NextTrial next = peek();
    if (next == nullptr || schedule::fingerprint(next->schedule) != schedule::fingerprint(wanted.schedule))
      return false;
    take();
    return true;
  }
  // Receives the outcome of every trial that was taken, in that order.
  virtual void learn(const Trial& tried, const TrialOutcome& run) = 0;
  // Further moves that the outcomes suggest; each is returned once.
  [[nodiscard]] virtual std::vector<std::unique_ptr<Move>> offspring() { return {}; }
  // A copy for planning ahead. What the copy learns does not affect this one.
  [[nodiscard]] virtual std::unique_ptr<Move> clone() const = 0;
  // What the move skipped in this search; "" if nothing.
  [[nodiscard]] virtual std::string left_out() const { return {}; }
};

using Moves = std::vector<std::unique_ptr<Move>>;

// The result of offspring(). A copy of a move has none: only the original returns them.
struct Offspring {
  Moves moves;
  Offspring() = default;
  Offspring(const Offspring&) {}
  Offspring& operator=(const Offspring&) = delete;
};

// --- where moves come from; each file has one kind

// Level 1: the faults of the dump themselves, in their order, spacing and durations; calls one at a time, then those of
// one root cause together, then with the other faults.
[[nodiscard]] std::vector<Trial> plain_trials(const World& world);
[[nodiscard]] std::unique_ptr<Move> plain_move(const World& world, std::vector<Trial> trials);
// Times after the workload's start for a fault whose time is unknown, most likely first.
[[nodiscard]] std::vector<std::int64_t> points_of_workload(std::int64_t length_ns);
// For a schedule that reproduced the bug too rarely and starts at a fixed time: the same at other points of the
// workload. On a slow machine the system may not be ready yet at that time, or may already be done.
[[nodiscard]] std::vector<Trial> other_times(const World& world, const schedule::Schedule& lead);
// The same with longer pauses and partitions, where only logs give their length or leave it open.
[[nodiscard]] std::vector<Trial> other_lengths(const World& world, const schedule::Schedule& lead);
// The same schedule on each of the nodes that a production host may be.
[[nodiscard]] std::vector<Schedule> on_replicas(const World& world, const Schedule& schedule);
// The most likely trials, moved to other replicas.
[[nodiscard]] std::vector<Trial> replica_trials(const World& world, const std::vector<Trial>& trials);
// Level 1: many calls at once, to find the one that matters by bisection.
[[nodiscard]] std::unique_ptr<Move> call_group_move(const World& world);
// Level 2: the nth matching call, by ranges and by single ones.
[[nodiscard]] Moves nth_moves(const World& world);
[[nodiscard]] std::unique_ptr<Move> nth_move(const World& world, const schedule::Schedule& base, const std::string& id,
                                             double prior, std::string why);
// Levels 1 and 2: less common shapes that the evidence only suggests.
[[nodiscard]] std::vector<Trial> rare_trials(const World& world);
// Level 1: the real limits behind calls that fail for lack of a resource, processes ended for lack of memory, and waits
// for disks. `lead`: a schedule that reproduced the bug, but too rarely; with it, only the limits behind its faults are
// tried, replacing them.
[[nodiscard]] std::vector<Trial> limit_trials(const World& world, const schedule::Schedule* lead = nullptr);
// Level 2: what happened before the fault, and on level 3 where after that. `lead`: a schedule that reproduced the bug,
// but too rarely; with it, only its faults are refined.
[[nodiscard]] Moves context_moves(const World& world, const schedule::Schedule* lead = nullptr);
// Levels 1 and 2: guesses about unlogged faults that preceded the logged one.
[[nodiscard]] Moves before_moves(const World& world);
[[nodiscard]] std::vector<Trial> call_context_trials(const World& world);
// Level 2: a process or network fault at the event that another node produced right before it. The phase that a failure
// needs may be that of another node: a follower's sync, a worker's request. `lead` as above.
[[nodiscard]] std::vector<Trial> elsewhere_trials(const World& world, const schedule::Schedule* lead = nullptr);
// Level 3. `fired`: the fault of `reached` that fired, or its alternative.
[[nodiscard]] std::unique_ptr<Move> place_move(const World& world, const schedule::Schedule& reached,
                                               const std::string& fired, double prior);
// Questions for the survey that place moves will need, for one context and for the first ones.
[[nodiscard]] std::vector<Question> place_questions_ahead(const World& world);
[[nodiscard]] std::vector<Question> place_questions(const World& world, const schedule::Fault& fault);

// --- helpers

// Orders trials of equal yield by `seed`. Seed 1 keeps the plan's order.
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
// The expected yield of a run of it per cost.
[[nodiscard]] double worth_of(const World& world, const Lab& lab, const Trial& t);
// Most likely first; equals in the paper's order.
[[nodiscard]] std::vector<const Candidate*> by_weight(const Plan& plan);
[[nodiscard]] const schedule::FaultOutcome* outcome_of(const schedule::RunResult& result, std::string_view id);
// True if its only conditions are times.
[[nodiscard]] bool waits_only_for_time(const schedule::Fault& fault);
// At the time after the workload's start that production showed, but not in its second half; at once if that is
// unknown.
[[nodiscard]] std::vector<schedule::Condition> when_observed(const World& world, const Candidate& candidate);
[[nodiscard]] std::string context_words(const schedule::Condition& condition);
// Can this node's calls be made to fail? The kernel's override works for any process; everything else needs nodes that
// rose starts: config::Node::entered_by_rose(), as the injector checks.
[[nodiscard]] bool can_fail_calls(const Inputs& inputs, std::string_view node);
// Can its calls be delayed, or done in part? Userspace does that.
[[nodiscard]] bool can_delay_calls(const Inputs& inputs, std::string_view node);

}  // namespace rose::diagnose
