// A move is one way to refine some candidates: fail the nth call, wait for a context, stop at a place, arm many at
// once. It proposes its next trial and estimates how likely that reproduces the bug; the scheduler compares. Private to
// diagnose.
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

// What all moves may read. The search adds what runs teach; the rest does not change.
struct World {
  const Inputs* inputs = nullptr;
  const config::Config* config = nullptr;
  Plan plan;
  std::int64_t workload_ns = 0;  // how long the workload takes without faults; 0: not known yet
  Survey survey;
  std::optional<ContextIndex> contexts;
  std::map<std::string, int> node_numbers;
  std::set<std::string> moments;  // at which process and network faults came, and showed nothing

  std::set<std::string, std::less<>> in_vain;  // faults that came among many in a run that showed nothing

  // The factor by which runs have changed the weight of a candidate, by its fault's id; 1 where there is no entry.
  std::map<std::string, double, std::less<>> belief;

  // The average of the schedule's faults.
  [[nodiscard]] double believed(const schedule::Schedule& schedule) const;
  [[nodiscard]] bool uses(std::string_view part) const { return !inputs->without.contains(std::string(part)); }
  [[nodiscard]] bool level(int level) const;
  [[nodiscard]] const Candidate* candidate(std::string_view fault_id) const;
};

struct Try {
  schedule::Schedule schedule;
  std::string why;  // "all process and network faults, as they were seen"
  int level = 1;
  double yield = 0;    // estimated probability that the run reproduces the bug, with the weights of its candidates as
                       // they were at first
  bool again = false;  // another run of a schedule that missed: a miss is no proof
  bool look = false;   // it only counts; that its faults do not fire is meant so
  bool many = false;   // its faults need not belong together: a hit is narrowed down before it is confirmed
  std::string moment;  // at which it is expected to come; "" unknown
};

// The outcome of a run, as far as moves learn from it.
struct Shown {
  const schedule::RunResult* result = nullptr;  // its trace is there only when the run was made just now
  bool fresh = true;                            // false: it was made before, for another move
  double observables = 0;                       // share of the dump's observables that came back
};

// Shared, as the scheduler compares all moves' next trials before each run, and a look's schedule is long.
using NextTry = std::shared_ptr<const Try>;

class Move {
 public:
  virtual ~Move() = default;
  // The next try; null when there is none, or none until what is under way has been learnt.
  [[nodiscard]] virtual NextTry peek() = 0;
  // The one that peek() gave is made.
  virtual void take() = 0;
  // The best trials that do not hang by one another, so that any of them may be taken next: as peek() gives them.
  [[nodiscard]] virtual std::vector<NextTry> peek_all() {
    NextTry next = peek();
    return next == nullptr ? std::vector<NextTry>{} : std::vector<NextTry>{std::move(next)};
  }
  // That one of them is made; false: the move would not try it any more.
  [[nodiscard]] virtual bool take_one(const Try& wanted) {
    const NextTry next = peek();
    if (next == nullptr || schedule::fingerprint(next->schedule) != schedule::fingerprint(wanted.schedule))
      return false;
    take();
    return true;
  }
  // Receives the outcome of all that take() was called for, in that order.
  virtual void learn(const Try& tried, const Shown& shown) = 0;
  // Further moves that what was learnt gives rise to; each is given once.
  [[nodiscard]] virtual std::vector<std::unique_ptr<Move>> offspring() { return {}; }
  // A copy for planning ahead. What the copy learns does not affect this one.
  [[nodiscard]] virtual std::unique_ptr<Move> clone() const = 0;
  // What the move left out in this search; "" when nothing.
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
[[nodiscard]] std::vector<Try> plain_tries(const World& world);
[[nodiscard]] std::unique_ptr<Move> plain_move(const World& world, std::vector<Try> tries);
// When a fault may come of which nothing says when it came, since the workload began: the likeliest first.
[[nodiscard]] std::vector<std::int64_t> points_of_workload(std::int64_t length_ns);
// For a schedule that reproduced the bug too rarely and begins at a time: the same at other points of the workload. On
// a slow machine the system may not be ready yet at that time, or may already be done.
[[nodiscard]] std::vector<Try> other_times(const World& world, const schedule::Schedule& lead);
// The same with pauses and cuts longer whose length only logs tell, or leave open.
[[nodiscard]] std::vector<Try> other_lengths(const World& world, const schedule::Schedule& lead);
// The same schedule with the nodes in turn of which a host of production may be any.
[[nodiscard]] std::vector<Schedule> on_replicas(const World& world, const Schedule& schedule);
// And the likeliest tries so.
[[nodiscard]] std::vector<Try> replica_tries(const World& world, const std::vector<Try>& tries);
// Level 1: many at once, to find the one that counts by halves.
[[nodiscard]] std::unique_ptr<Move> call_group_move(const World& world);
// Level 2: the nth matching call, by ranges and by single ones.
[[nodiscard]] Moves nth_moves(const World& world);
[[nodiscard]] std::unique_ptr<Move> nth_move(const World& world, const schedule::Schedule& base, const std::string& id,
                                             double belief, std::string why);
// Levels 1 and 2: shapes that the evidence only hints at.
[[nodiscard]] std::vector<Try> rare_tries(const World& world);
// Level 1: the real limits behind calls that fail for lack of a resource, ends for lack of memory, and waits for disks.
// `lead`: a schedule that reproduced the bug, but too rarely; with it, only the limits behind its faults are tried, in
// their place.
[[nodiscard]] std::vector<Try> limit_tries(const World& world, const schedule::Schedule* lead = nullptr);
// Level 2: what happened before the fault, and on level 3 where after that. `lead`: a schedule that reproduced the bug,
// but too rarely; with it, only its faults are refined.
[[nodiscard]] Moves context_moves(const World& world, const schedule::Schedule* lead = nullptr);
// Levels 1 and 2: what no log tells came before what one tells.
[[nodiscard]] Moves before_moves(const World& world);
[[nodiscard]] std::vector<Try> call_context_tries(const World& world);
// Level 2: a process or network fault at what another node did right before it. The phase that a failure needs may be
// another node's: a follower's sync, a worker's request. `lead` as above.
[[nodiscard]] std::vector<Try> elsewhere_tries(const World& world, const schedule::Schedule* lead = nullptr);
// Level 3. `fired`: the fault of `reached`, or the alternative of it, that came.
[[nodiscard]] std::unique_ptr<Move> place_move(const World& world, const schedule::Schedule& reached,
                                               const std::string& fired, double belief);
// What place moves want to know beforehand: in one context, and in those that come first.
[[nodiscard]] std::vector<Question> place_questions_ahead(const World& world);
[[nodiscard]] std::vector<Question> place_questions(const World& world, const schedule::Fault& fault);

// --- helpers

// What promises the same has no order of its own: `seed` gives it one. 1 leaves it as the plan has it.
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
// The yield of a run of it, for what it costs.
[[nodiscard]] double worth_of(const World& world, const Lab& lab, const Try& t);
// The likeliest first; of equal ones in the paper's order.
[[nodiscard]] std::vector<const Candidate*> by_weight(const Plan& plan);
[[nodiscard]] const schedule::FaultOutcome* outcome_of(const schedule::RunResult& result, std::string_view id);
// Waits for nothing but times.
[[nodiscard]] bool by_the_clock(const schedule::Fault& fault);
// As long after the workload began as production showed it, but not in its second half; at once where that is not
// known.
[[nodiscard]] std::vector<schedule::Condition> when_seen(const World& world, const Candidate& candidate);
[[nodiscard]] std::string context_words(const schedule::Condition& condition);
// Can this node's calls be made to fail? The kernel's override can answer calls of any process; all else is done to
// nodes that rose starts: config::Node::entered_by_rose(), as the injector asks.
[[nodiscard]] bool can_fail_calls(const Inputs& inputs, std::string_view node);
// Can they be held up, or done in part? Userspace does that.
[[nodiscard]] bool can_hold_calls(const Inputs& inputs, std::string_view node);

}  // namespace rose::diagnose
