#include "explain/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "explain/permutations.h"

namespace rose::explain {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostPairs = 20'000;  // at most this many successions of steps are compared in one run
constexpr double kLeastWeight = 0.25;
// A step is reported only if the shares of failing and of correct runs that have the step differ by at least this much.
// The limit is high, because one run of five may have a step by chance.
constexpr double kLeastContrast = 0.6;
constexpr double kNeedless = 0.5;  // factor for a step that is absent when a shorter fault reproduces the bug
constexpr double kSame = 0.25;     // smaller differences between shares of runs count as chance
// Factors for steps that correct runs also make, only earlier (for example at a start, which is repeated after a
// crash), and for steps that also occur in runs without harm.
constexpr double kNothingNew = 0.6, kHarmless = 0.35;

// Half a source of noise (a property that varies among equal runs) is added to the number of sources that the runs
// show. There may be further sources that no run shows, so a comparison of few runs is never taken for proof.
constexpr double kUnseenSource = 0.5;

using Key = std::uint64_t;  // one kind of step, or two kinds in succession
Key pair_key(std::uint32_t kind, std::uint32_t next) { return (Key{kind} << 32) | next; }

struct First {
  std::int64_t after_ns = kNever;
  Nearness nearness = Nearness::elsewhere;
  std::uint32_t in = kNoKind;
};
using Firsts = std::unordered_map<Key, First>;

struct Threads {
  std::set<std::int32_t> tids;
  std::set<std::string> nodes;
};

Threads faulted(const Run& run) {
  Threads threads;
  for (const schedule::FaultOutcome* fault : fired(run)) {
    if (fault->tid != 0) threads.tids.insert(fault->tid);
    if (!fault->node.empty()) threads.nodes.insert(fault->node);
    for (const schedule::Stack& stack : fault->stacks)
      if (stack.tid != 0) threads.tids.insert(stack.tid);
  }
  return threads;
}

void note(Firsts& firsts, Key key, std::uint32_t in, std::int64_t after, Nearness nearness) {
  First& first = firsts[key];
  if (after < first.after_ns) first = {after, nearness, in};
}

// The first step of each kind, and the first succession of each two kinds, in (from_ns, to_ns] of a run. Only the first
// one counts, so that the number of repetitions does not matter.
Firsts firsts_of(const Run& run, const Kinds& kinds, const Merged& merged, std::int64_t from_ns, std::int64_t to_ns) {
  const Threads threads = faulted(run);
  Firsts firsts;
  std::unordered_map<std::int32_t, std::uint32_t> before;  // by thread
  std::size_t pairs = 0;
  for (const Step& step : run.steps) {
    if (step.ts_ns <= from_ns || step.ts_ns > to_ns) continue;
    const std::uint32_t id = merged[step.kind], in = merged[step.in];
    const Kind& kind = kinds[id];
    if (kind.unsure) continue;
    Nearness nearness = Nearness::elsewhere;
    if (step.tid != 0 && threads.tids.contains(step.tid)) nearness = Nearness::same_thread;
    else if (threads.nodes.contains(kind.node)) nearness = Nearness::same_node;
    const std::int64_t after = step.ts_ns - run.cut_ns;
    note(firsts, pair_key(id, kNoKind), in, after, nearness);
    const bool of_thread = kind.what == StepKind::function || kind.what == StepKind::thrown ||
                           kind.what == StepKind::call || kind.what == StepKind::failed_call;
    if (!of_thread || kind.sampled || step.tid == 0) continue;
    const auto [last, fresh] = before.emplace(step.tid, id);
    if (!fresh && last->second != id && pairs < kMostPairs) {
      const bool function = kind.what == StepKind::function || kinds[last->second].what == StepKind::function;
      if (function) note(firsts, pair_key(last->second, id), in, after, nearness), ++pairs;
    }
    last->second = id;
  }
  return firsts;
}

// The kinds of steps before the cut of a run.
std::unordered_set<std::uint32_t> kinds_before(const Run& run, const Merged& merged) {
  std::unordered_set<std::uint32_t> out;
  for (const Step& step : run.steps) {
    if (step.ts_ns > run.cut_ns) break;
    out.insert(merged[step.kind]);
  }
  return out;
}

// The parts of a run that are compared.
struct Condensed {
  const Run* run = nullptr;
  Firsts firsts;
  // Of correct and harmless runs: the steps that are certainly later than the cut of failing runs. Not set if this
  // holds for all steps after the cut.
  std::optional<Firsts> later;
  Firsts ahead;  // of failing runs: steps shortly before the cut, which correct runs may have after their cut
  std::unordered_set<std::uint32_t> before;  // of correct runs: the kinds of steps before the cut
};

struct Groups {
  std::vector<const Firsts*> failing, sound, near, shorter;
  std::vector<const Firsts*> later_sound, later_near, ahead;     // see Condensed
  std::vector<const std::unordered_set<std::uint32_t>*> before;  // of correct runs
  std::int64_t shortest_failing = kNever;  // the shortest time from the cut of a failing run to its end
  [[nodiscard]] bool enough() const { return failing.size() >= 2 && sound.size() >= 2; }
};

// Sorts the runs by group. Takes only the runs that were asked `question`; with kNoKind, all runs.
Groups grouped(const std::vector<Condensed>& runs, std::uint32_t question = kNoKind) {
  Groups groups;
  for (const Condensed& one : runs) {
    if (one.run->unasked.contains(question)) continue;
    switch (one.run->group) {
      case Group::failing:
        groups.failing.push_back(&one.firsts);
        groups.ahead.push_back(&one.ahead);
        groups.shortest_failing = std::min(groups.shortest_failing, one.run->end_ns - one.run->cut_ns);
        break;
      case Group::sound:
        groups.sound.push_back(&one.firsts);
        groups.later_sound.push_back(one.later ? &*one.later : &one.firsts);
        groups.before.push_back(&one.before);
        break;
      case Group::near:
        groups.near.push_back(&one.firsts);
        groups.later_near.push_back(one.later ? &*one.later : &one.firsts);
        break;
      case Group::shorter: groups.shorter.push_back(&one.firsts); break;
    }
  }
  return groups;
}

double share(const std::vector<const Firsts*>& runs, Key key, std::int64_t within) {
  if (runs.empty()) return 0;
  std::size_t have = 0;
  for (const Firsts* run : runs)
    if (const auto first = run->find(key); first != run->end() && first->second.after_ns <= within) ++have;
  return static_cast<double>(have) / static_cast<double>(runs.size());
}

double variance(double share) { return 4 * share * (1 - share); }

// Computes the probability that a property which varies among equal runs separates all failing runs from all correct
// ones. If k of n runs have a property by chance, binomial(n, k) sets of runs are possible. Properties that always
// occur together count once.
class Noise {
 public:
  void add(std::vector<bool> has) { patterns_.insert(std::move(has)); }
  [[nodiscard]] double chance(std::size_t failing, std::size_t sound) const {
    return std::min(1.0, sources(failing, sound) * 2 / binomial(failing + sound, failing));
  }
  // Like chance(), but one run of either side may be an exception.
  [[nodiscard]] double chance_but_for_one(std::size_t failing, std::size_t sound) const {
    const auto runs = failing + sound;
    const double ways = static_cast<double>(sound) / binomial(runs, failing + 1) +
                        static_cast<double>(failing) / binomial(runs, failing - 1);
    return std::min(1.0, sources(failing, sound) * ways);
  }

 private:
  [[nodiscard]] double sources(std::size_t failing, std::size_t sound) const {
    std::size_t balanced = 0;  // properties that occur in as many runs as failed, or as were correct, give or take one
    for (const std::vector<bool>& pattern : patterns_) {
      const auto have = static_cast<std::size_t>(std::count(pattern.begin(), pattern.end(), true));
      const auto beside = [&](std::size_t k) { return have + 1 >= k && have <= k + 1; };
      if (beside(failing) || beside(sound)) ++balanced;
    }
    return static_cast<double>(balanced) / 3 + kUnseenSource;
  }

  std::set<std::vector<bool>> patterns_;
};

// For each run, whether it contains the key within that time; the failing runs first.
std::vector<bool> pattern_of(const Groups& groups, Key key, std::int64_t within = kNever) {
  std::vector<bool> out;
  for (const auto* side : {&groups.failing, &groups.sound})
    for (const Firsts* run : *side) {
      const auto first = run->find(key);
      out.push_back(first != run->end() && first->second.after_ns <= within);
    }
  return out;
}

Difference measure(const Groups& groups, Key key) {
  Difference d;
  d.kind = static_cast<std::uint32_t>(key >> 32);
  d.next = static_cast<std::uint32_t>(key);
  d.failing_runs = groups.failing.size();
  d.sound_runs = groups.sound.size();
  d.near_runs = groups.near.size();
  d.failing = share(groups.failing, key, kNever);
  d.sound = share(groups.sound, key, kNever);
  d.near = share(groups.near, key, kNever);
  d.missing = d.failing < d.sound;
  // A step does not count as missing if correct runs make it only at a time at which the shortest failing run has
  // ended, or if failing runs make it shortly before their cut and correct runs do not repeat it later.
  if (d.missing) {
    std::size_t have = 0;
    for (std::size_t i = 0; i < groups.failing.size(); ++i)
      have += groups.failing[i]->contains(key) || groups.ahead[i]->contains(key) ? 1 : 0;
    const double again = share(groups.later_sound, key, groups.shortest_failing), lack = d.failing;
    d.failing = static_cast<double>(have) / static_cast<double>(groups.failing.size());
    d.sound = share(groups.sound, key, groups.shortest_failing);
    d.again = d.next == kNoKind && again - lack > d.sound - d.failing;
    if (d.again) d.failing = lack, d.sound = again;
    d.near = share(d.again ? groups.later_near : groups.near, key, groups.shortest_failing);
  }
  const auto amount = [](const auto& runs) { return static_cast<double>(runs.size()); };
  const double affected = (d.missing ? 1 - d.failing : d.failing) * amount(groups.failing);
  const double others = (d.missing ? 1 - d.sound : d.sound) * amount(groups.sound) +
                        (d.missing ? 1 - d.near : d.near) * amount(groups.near);
  if (affected > 0) d.ochiai = affected / std::sqrt(amount(groups.failing) * (affected + others));
  d.noise = (variance(d.failing) * amount(groups.failing) + variance(d.sound) * amount(groups.sound)) /
            (amount(groups.failing) + amount(groups.sound));
  const double shorter = share(groups.shorter, key, kNever);
  d.needless = groups.shorter.empty() ? 0 : d.missing ? shorter : 1 - shorter;
  d.clean = d.needless == 0 && (d.missing ? d.failing == 0 && d.sound == 1 : d.failing == 1 && d.sound == 0);
  d.odd =
      static_cast<std::size_t>(std::lround((1 - std::abs(d.failing - (d.missing ? 1 : 0))) * amount(groups.failing) +
                                           std::abs(d.sound - (d.missing ? 1 : 0)) * amount(groups.sound)));
  d.harmless = !groups.near.empty() && (d.missing ? d.near < d.sound - kSame : d.near > d.sound + kSame);
  d.only_bug = d.clean && !groups.near.empty() && d.near == d.sound;
  return d;
}

// Describes the first occurrence of the key in the runs that contain it: sets the median of its times, and the most
// frequent nearness and function.
void place(Difference& d, const Groups& groups, Key key) {
  std::vector<const First*> seen;
  for (const Firsts* run : d.again ? groups.later_sound : d.missing ? groups.sound : groups.failing)
    if (const auto first = run->find(key); first != run->end()) seen.push_back(&first->second);
  if (seen.empty()) return;
  std::sort(seen.begin(), seen.end(), [](const First* a, const First* b) { return a->after_ns < b->after_ns; });
  d.after_ns = seen[seen.size() / 2]->after_ns;
  std::array<std::size_t, 3> nearness{};
  std::map<std::uint32_t, std::size_t> in;
  for (const First* first : seen) ++nearness[static_cast<std::size_t>(first->nearness)], ++in[first->in];
  d.nearness = static_cast<Nearness>(std::max_element(nearness.begin(), nearness.end()) - nearness.begin());
  d.in =
      std::max_element(in.begin(), in.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
}

double weight_of(Nearness nearness) {
  switch (nearness) {
    case Nearness::same_thread: return 1;
    case Nearness::same_node: return 0.9;
    case Nearness::elsewhere: return 0.75;
  }
  return 0.75;
}

}  // namespace

std::string of_runs(double share, std::size_t runs) {
  return fmt::format("{} of {}", std::lround(share * static_cast<double>(runs)), runs);
}

bool of_bug_alone(const std::vector<Difference>& differences) {
  return std::any_of(differences.begin(), differences.end(),
                     [](const Difference& d) { return d.only_bug && d.next == kNoKind; });
}

Comparison compare(const std::vector<Run>& runs, const Kinds& kinds, const Merged& merged) {
  Comparison out;
  std::vector<Condensed> condensed;
  std::unordered_set<std::uint32_t> unknown;  // kinds of functions that a run may have entered without a record
  // upper bound of the time by which the cut of failing runs may be later than that of correct runs
  std::int64_t known_before = 0;
  for (const Run& run : runs)
    if (run.group == Group::failing && !fired(run).empty())
      known_before = std::max(known_before, run.cut_ns - run.known_ns);
  for (const Run& run : runs) {
    const bool hit = !fired(run).empty();
    if (run.group == Group::failing && !hit) continue;
    Condensed& one = condensed.emplace_back();
    one.run = &run;
    one.firsts = firsts_of(run, kinds, merged, run.cut_ns, run.end_ns);
    for (const std::uint32_t kind : run.let_go)
      if (!one.firsts.contains(pair_key(merged[kind], kNoKind))) unknown.insert(merged[kind]);
    if (run.group == Group::failing) one.ahead = firsts_of(run, kinds, merged, run.known_ns, run.cut_ns);
    if (run.group == Group::sound) one.before = kinds_before(run, merged);
    if ((run.group == Group::sound || run.group == Group::near) && known_before != 0)
      one.later = firsts_of(run, kinds, merged, run.cut_ns + known_before, run.end_ns);
  }
  const Groups all = grouped(condensed);
  out.enough = all.enough();
  if (!out.enough) return out;
  std::unordered_set<Key> keys;
  for (const auto* side : {&all.failing, &all.sound})
    for (const Firsts* run : *side)
      for (const auto& [key, first] : *run) keys.insert(key);
  std::set<std::string> unsure;  // names of functions, without their nodes
  for (const std::uint32_t kind : unknown) {
    keys.erase(pair_key(kind, kNoKind));
    if (kinds[kind].what == StepKind::function) unsure.insert(kinds[kind].function);
  }
  out.unsure = unsure.size();

  // Values are judged apart from the program's steps, and each question is judged apart from the others. Otherwise
  // answers that vary would make a difference in steps, or in other answers, look like chance. Messages between nodes
  // are judged apart, too, because heartbeats and retries vary.
  Noise steps, successions, exchanges;
  std::map<std::uint32_t, Noise> values;
  std::map<std::uint32_t, Groups> asked;  // by question
  Permutations permuted(all.failing.size(), all.sound.size());
  for (const Key key : keys) {
    const Kind& kind = kinds[static_cast<std::uint32_t>(key >> 32)];
    const bool value = kind.what == StepKind::value, exchange = is_exchange(kind.what);
    if (value && !asked.contains(kind.question)) asked.emplace(kind.question, grouped(condensed, kind.question));
    const Groups& groups = value ? asked.at(kind.question) : all;
    if (!groups.enough()) continue;
    Difference d = measure(groups, key);
    const bool succession = d.next != kNoKind;
    const bool step = !succession && !value && !exchange;
    if (step) permuted.add(pattern_of(groups, key));
    if (d.noise > 0) {
      Noise& noise = succession ? successions : value ? values[kind.question] : exchange ? exchanges : steps;
      noise.add(pattern_of(groups, key, d.missing ? groups.shortest_failing : kNever));
      if (step) ++out.noisy;
    }
    if (d.failing == d.sound) continue;
    place(d, groups, key);
    const auto earlier = std::count_if(groups.before.begin(), groups.before.end(),
                                       [&](const auto* had) { return had->contains(d.kind); });
    if (!d.missing && !succession) d.earlier = static_cast<double>(earlier) / static_cast<double>(groups.before.size());
    const double known = d.harmless ? kHarmless : kNothingNew;
    d.strength = d.ochiai * (1 - d.noise) * weight_of(d.nearness) * (1 - (1 - kNeedless) * d.needless);
    d.weight = d.strength * (1 - (1 - known) * d.earlier);
    // A difference with little weight may still distinguish the sides.
    if ((d.weight >= kLeastWeight || d.odd <= 1) && std::abs(d.failing - d.sound) >= kLeastContrast - 1e-9)
      out.differences.push_back(d);
  }
  out.chance = steps.chance(all.failing.size(), all.sound.size());
  const double of_successions = successions.chance(all.failing.size(), all.sound.size());
  out.exchange_chance = exchanges.chance(all.failing.size(), all.sound.size());
  const auto is_value = [&](const Difference& d) { return kinds[d.kind].what == StepKind::value; };
  const auto is_exchanged = [&](const Difference& d) { return is_exchange(kinds[d.kind].what); };
  const auto has_clean = [&](bool succession) {
    return std::any_of(out.differences.begin(), out.differences.end(), [&](const Difference& d) {
      return d.clean && (d.next != kNoKind) == succession && !is_value(d) && !is_exchanged(d);
    });
  };
  // Messages between nodes give chance a second opportunity to make a difference, so the limit is halved.
  const bool believed_exchanges = out.exchange_chance <= kMostChance / 2 &&
                                  std::any_of(out.differences.begin(), out.differences.end(),
                                              [&](const Difference& d) { return d.clean && is_exchanged(d); });
  // If only one side sends a message, only that side receives it: report this once.
  std::unordered_set<std::uint64_t> sent;
  const auto sent_key = [](std::uint32_t kind, bool missing) { return std::uint64_t{kind} << 1 | (missing ? 1 : 0); };
  for (const Difference& d : out.differences)
    if (kinds[d.kind].what == StepKind::sent) sent.insert(sent_key(d.kind, d.missing));
  // One run of many may be an exception. Chance produces differences with one exception as well, so the limit for them
  // is half of the usual one.
  const bool but_for_one = std::any_of(out.differences.begin(), out.differences.end(), [&](const Difference& d) {
    return d.odd == 1 && d.next == kNoKind && !is_value(d) && !is_exchanged(d);
  });
  const bool believed =
      (out.chance <= kMostChance && has_clean(false)) ||
      (but_for_one && steps.chance_but_for_one(all.failing.size(), all.sound.size()) <= kMostChance / 2);
  out.hidden = !believed && but_for_one;
  std::set<std::uint32_t> believed_values;  // queries whose differences are not due to chance
  for (const Difference& d : out.differences) {
    if (!is_value(d) || d.next != kNoKind) continue;
    const std::uint32_t question = kinds[d.kind].question;
    const Noise& noise = values[question];
    if ((d.clean && noise.chance(d.failing_runs, d.sound_runs) <= kMostChance) ||
        (d.odd == 1 && noise.chance_but_for_one(d.failing_runs, d.sound_runs) <= kMostChance / 2))
      believed_values.insert(question);
    else if (d.odd <= 1) out.undecided.insert(question);
  }
  for (const std::uint32_t question : believed_values) out.undecided.erase(question);
  const bool believed_successions = of_successions <= kMostChance && has_clean(true);
  const bool unbelieved_of_bug =
      !believed_successions && std::any_of(out.differences.begin(), out.differences.end(),
                                           [](const Difference& d) { return d.only_bug && d.next != kNoKind; });
  std::erase_if(out.differences, [&](const Difference& d) {
    if (d.next != kNoKind) return !believed_successions || !d.clean;
    if (is_exchanged(d))
      return !believed_exchanges ||
             (kinds[d.kind].what == StepKind::taken && sent.contains(sent_key(kinds[d.kind].as_sent, d.missing)));
    return is_value(d) ? !believed_values.contains(kinds[d.kind].question) : !believed;
  });
  out.unproven = unbelieved_of_bug && !of_bug_alone(out.differences);
  for (Difference& d : out.differences)
    if (d.next == kNoKind && !is_value(d) && !is_exchanged(d))
      d.by_chance = permuted.chance(std::abs(d.failing - d.sound));
  std::sort(out.differences.begin(), out.differences.end(), [](const Difference& a, const Difference& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    return std::tie(a.after_ns, a.kind, a.next) < std::tie(b.after_ns, b.kind, b.next);
  });
  return out;
}

double least_chance(int runs) {
  const auto each = static_cast<std::size_t>(std::max(1, runs));
  return std::min(1.0, kUnseenSource * 2 / binomial(2 * each, each));
}

int fewest_runs() {
  int runs = 1;
  while (least_chance(runs) > kMostChance) ++runs;
  return runs;
}

}  // namespace rose::explain
