#include "diagnose/forecast.h"
#include "weights/weights.h"

#include <deque>
#include <set>

namespace rose::diagnose {
namespace {

// The number of outcomes that are simulated for narrowing and minimisation; later requests can hardly be predicted.
constexpr std::size_t kMostBranches = 256;

struct Repeat {
  Schedule schedule;
  double yield = 0;
  int runs = 1;
};

// The next trial of a copy of a move.
struct Peeked {
  NextTrial next;
  double worth = 0;
};

}  // namespace

schedule::RunResult plain_miss(const Schedule& schedule) {
  schedule::RunResult result;
  result.verdict = schedule::Verdict::not_reproduced;
  result.oracle = schedule::OracleAnswer::miss;
  std::set<std::string> groups;
  for (const Fault& fault : schedule.faults) {
    schedule::FaultOutcome outcome;
    outcome.id = fault.id;
    outcome.node = fault.node;
    outcome.fired = fault.group.empty() || groups.insert(fault.group).second;
    outcome.armed = outcome.fired;
    outcome.withdrawn = !outcome.fired;
    outcome.seen = static_cast<std::uint64_t>(std::max(1, fault.count));
    outcome.injected = outcome.fired ? 1 : 0;
    for (const Condition& condition : fault.when) {
      schedule::ConditionOutcome met;
      met.met = outcome.fired;
      met.wanted = static_cast<std::uint64_t>(std::max(1, condition.count));
      met.seen = met.wanted;
      met.node = fault.node;
      outcome.conditions.push_back(std::move(met));
    }
    result.faults.push_back(std::move(outcome));
  }
  return result;
}

namespace {

// Simulates at most `rounds` steps of the search, in which every trial misses. `take` receives each schedule and its
// trial (nullptr: another run of a schedule that missed) and returns false to end the simulation.
template <class Take>
void simulate(const World& world, const Lab& lab, const Moves& moves, const std::vector<PendingTrial>& pending,
              const std::vector<Retry>& retries, int repeats, std::size_t rounds, Take take) {
  Moves copies;
  std::vector<Peeked> peeks;
  const auto peek = [&](Move& move) {
    Peeked peeked{move.peek()};
    if (peeked.next && world.level(peeked.next->level)) peeked.worth = worth_of(world, lab, *peeked.next);
    else peeked.next = {};
    return peeked;
  };
  const auto learn = [&](Move& move, const Trial& tried) {
    const schedule::RunResult result = plain_miss(tried.schedule);
    TrialOutcome outcome;
    outcome.result = &result;
    outcome.fresh = false;
    move.learn(tried, outcome);
  };
  const auto add = [&](std::unique_ptr<Move> move) {
    peeks.push_back(peek(*move));
    copies.push_back(std::move(move));
  };
  for (const std::unique_ptr<Move>& move : moves) {
    std::unique_ptr<Move> copy = move->clone();
    for (const PendingTrial& running : pending)
      if (running.move == move.get() && !running.what->exploratory) learn(*copy, *running.what);
    std::vector<std::unique_ptr<Move>> further = copy->offspring();
    add(std::move(copy));
    for (std::unique_ptr<Move>& child : further) add(std::move(child));
  }
  std::vector<Repeat> missed;
  for (const Retry& retry : retries) missed.push_back({*retry.schedule, retry.yield, retry.runs});
  std::set<std::string> seen;
  for (; rounds > 0; --rounds) {
    std::size_t best = copies.size();
    double most_worth = 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (!peeks[i].next || (best != copies.size() && peeks[i].worth <= most_worth)) continue;
      best = i;
      most_worth = peeks[i].worth;
    }
    Repeat* retry = nullptr;
    if (repeats > 0)
      for (Repeat& missed_one : missed)
        if (missed_one.runs < kMostRunsOfMiss && (retry == nullptr || missed_one.yield > retry->yield))
          retry = &missed_one;
    if (retry != nullptr && (best == copies.size() || retry->yield / lab.cost(retry->schedule) > most_worth)) {
      if (!take(retry->schedule, nullptr)) return;
      ++retry->runs;
      retry->yield *= 1 - kReproduces;
      --repeats;
      continue;
    }
    if (best == copies.size()) break;
    const NextTrial next_trial = peeks[best].next;
    const Trial& tried = *next_trial;
    copies[best]->take();
    std::string fingerprint = schedule::fingerprint(tried.schedule);
    if (!lab.knows(fingerprint) && seen.insert(std::move(fingerprint)).second) {
      if (!take(tried.schedule, &tried)) return;
      if (!tried.exploratory) missed.push_back({tried.schedule, tried.yield * kRepeatYield, 1});
    }
    // The outcome of an exploratory run cannot be predicted, so the copy learns nothing from it.
    if (!tried.exploratory) learn(*copies[best], tried);
    peeks[best] = peek(*copies[best]);
    for (std::unique_ptr<Move>& child : copies[best]->offspring()) add(std::move(child));
  }
}

}  // namespace

std::vector<Schedule> forecast_misses(const World& world, const Lab& lab, const Moves& moves,
                                      const std::vector<PendingTrial>& pending, const std::vector<Retry>& retries,
                                      int repeats, std::size_t room) {
  std::vector<Schedule> next;
  if (room == 0) return next;
  simulate(world, lab, moves, pending, retries, repeats, 8 * room + 64, [&](const Schedule& schedule, const Trial*) {
    next.push_back(schedule);
    return next.size() < room;
  });
  return next;
}

std::vector<NotTried> next_ideas(const World& world, const Lab& lab, const Moves& moves, std::size_t most) {
  std::vector<NotTried> next;
  if (most == 0) return next;
  simulate(world, lab, moves, {}, {}, 0, 8 * most + 64, [&](const Schedule& schedule, const Trial* of) {
    if (of != nullptr && !of->exploratory) next.push_back({schedule, of->level, of->why});
    return next.size() < most;
  });
  return next;
}

std::vector<Schedule> forecast_narrowing(const Narrower& narrower, std::size_t room) {
  std::vector<Schedule> next;
  std::deque<Narrower> branches{narrower};
  const auto after = [](Narrower branch, bool reproduced, const std::optional<Narrower::Part>& part) {
    std::set<std::string> fired;
    if (reproduced && part)
      for (const Fault& fault : part->schedule.faults) fired.insert(fault.id);
    branch.learn(reproduced, fired);
    return branch;
  };
  for (std::size_t looked = 0; looked < kMostBranches && !branches.empty() && next.size() < room; ++looked) {
    Narrower branch = std::move(branches.front());
    branches.pop_front();
    const std::optional<Narrower::Part> part = branch.next();
    if (!part) continue;
    next.push_back(part->schedule);
    for (const bool reproduced : {false, true}) branches.push_back(after(branch, reproduced, part));
  }
  return next;
}

void forecast_simplifying(const Simplifier& simplifier, int gate, int confirm, std::size_t room,
                          std::vector<Schedule>& next) {
  std::deque<Simplifier> branches{simplifier};
  std::set<std::string> seen;
  for (std::size_t looked = 0; looked < kMostBranches && !branches.empty() && next.size() < room; ++looked) {
    Simplifier branch = std::move(branches.front());
    branches.pop_front();
    const std::optional<Simplifier::Idea> idea = branch.next();
    const Schedule& schedule = idea ? idea->schedule : branch.current();
    if (seen.insert(fmt::format("{}{}", idea ? "" : "end ", schedule::fingerprint(schedule))).second)
      for (int run = 0; run < (idea ? gate : confirm) && next.size() < room; ++run) next.push_back(schedule);
    if (!idea) continue;
    for (const bool holds : {idea->likely, !idea->likely}) {
      branches.push_back(branch);
      branches.back().learn(holds);
    }
  }
}

}  // namespace rose::diagnose
