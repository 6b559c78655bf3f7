#include "explain/order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

namespace rose::explain {
namespace {

constexpr std::size_t kFewestRuns = 4;   // least number of runs of each side; with fewer, any order may be chance
constexpr std::size_t kMostOfNode = 40;  // at most this many steps of a node are examined, the earliest ones
// least gap in ns; not smaller, because times of log lines are exact only to some milliseconds
constexpr std::int64_t kLeastGap = 20'000'000;
// Of the pairs of steps whose order varies by chance, some pass the checks of swapped(): this is an upper estimate of
// their share. In simulations the share is a fifth if the times of a step cluster around two values, and almost zero if
// they cluster around one.
constexpr double kFarApart = 0.25;
constexpr double kFullWeight = 0.6;  // less than 1, because none of the steps is new

struct Seen {
  std::int64_t after_ns = 0;
  std::int32_t tid = 0;
  std::uint32_t in = kNoKind;
};
using Order = std::unordered_map<std::uint32_t, Seen>;

Order order_in(const Run& run, const Kinds& kinds) {
  Order order;
  for (const Step& step : run.steps) {
    if (step.ts_ns <= run.cut_ns || step.ts_ns > run.end_ns) continue;
    const Kind& kind = kinds[step.kind];
    if (kind.unsure || kind.sampled || kind.node.empty() || kind.what == StepKind::value ||
        kind.what == StepKind::silence || is_exchange(kind.what))
      continue;
    order.try_emplace(step.kind, Seen{step.ts_ns - run.cut_ns, step.tid, step.in});
  }
  return order;
}

struct OrderSides {
  std::vector<Order> failing, sound, near;
  std::set<std::string> hit;  // nodes that faults hit
};

double ways(std::size_t n, std::size_t k) {
  double out = 1;
  for (std::size_t i = 1; i <= k; ++i) out *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return out;
}

std::int64_t middle_of(const std::vector<Order>& runs, std::uint32_t kind) {
  std::vector<std::int64_t> times;
  for (const Order& run : runs) times.push_back(run.at(kind).after_ns);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Steps that occur in all runs of both sides; of each node only the earliest kMostOfNode.
std::vector<std::uint32_t> common(const OrderSides& sides, const Kinds& kinds) {
  std::map<std::string, std::vector<std::pair<std::int64_t, std::uint32_t>>> of_node;
  for (const auto& [kind, seen] : sides.failing.front()) {
    const auto has = [&](const Order& run) { return run.contains(kind); };
    if (std::all_of(sides.failing.begin(), sides.failing.end(), has) &&
        std::all_of(sides.sound.begin(), sides.sound.end(), has))
      of_node[kinds[kind].node].emplace_back(middle_of(sides.failing, kind), kind);
  }
  std::vector<std::uint32_t> out;
  for (auto& [node, all] : of_node) {
    std::sort(all.begin(), all.end());
    if (all.size() > kMostOfNode) all.resize(kMostOfNode);
    for (const auto& [after, kind] : all) out.push_back(kind);
  }
  return out;
}

struct Spread {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = std::numeric_limits<std::int64_t>::min();
  void add(std::int64_t value) { least = std::min(least, value), most = std::max(most, value); }
  [[nodiscard]] std::int64_t width() const { return most - least; }
};

// The delays of `a` after `b`.
Spread between(const std::vector<Order>& runs, std::uint32_t a, std::uint32_t b) {
  Spread range;
  for (const Order& run : runs)
    if (run.contains(a) && run.contains(b)) range.add(run.at(a).after_ns - run.at(b).after_ns);
  return range;
}

bool other_threads(const OrderSides& sides, std::uint32_t a, std::uint32_t b) {
  for (const auto* side : {&sides.failing, &sides.sound})
    for (const Order& run : *side)
      if (const std::int32_t one = run.at(a).tid, other = run.at(b).tid; one == 0 || other == 0 || one == other)
        return false;
  return true;
}

}  // namespace

std::vector<Swapped> swapped(const std::vector<Run>& runs, const Kinds& kinds, const schedule::Schedule& schedule) {
  OrderSides sides;
  for (const Run& run : runs) {
    const auto faults = fired(run);
    if (std::any_of(faults.begin(), faults.end(), [&](const auto* one) {
          const schedule::Fault* fault = schedule.find(one->id);
          return fault != nullptr && fault->kind == schedule::FaultKind::crash;
        }))
      return {};
    if ((run.group == Group::failing && faults.empty()) || run.group == Group::shorter) continue;
    (run.group == Group::failing ? sides.failing
     : run.group == Group::sound ? sides.sound
                                 : sides.near)
        .push_back(order_in(run, kinds));
    for (const schedule::FaultOutcome* fault : faults)
      if (run.group == Group::failing) sides.hit.insert(fault->node);
  }
  if (sides.failing.size() < kFewestRuns || sides.sound.size() < kFewestRuns) return {};
  const std::vector<std::uint32_t> all = common(sides, kinds);
  std::vector<Swapped> found;
  std::set<std::vector<bool>> noise;  // for each pair whose order differs among equal runs: its order in each run
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = i + 1; k < all.size(); ++k) {
      std::uint32_t late = all[i], early = all[k];
      if (kinds[late].node == kinds[early].node && !other_threads(sides, late, early)) continue;
      Spread failing = between(sides.failing, late, early), sound = between(sides.sound, late, early);
      if ((failing.least < 0) != (failing.most < 0) || (sound.least < 0) != (sound.most < 0)) {
        std::vector<bool> pattern;
        for (const auto* side : {&sides.failing, &sides.sound})
          for (const Order& run : *side) pattern.push_back(run.at(late).after_ns < run.at(early).after_ns);
        noise.insert(std::move(pattern));
        continue;
      }
      if ((failing.least < 0) == (sound.least < 0)) continue;
      if (failing.least < 0) {
        std::swap(late, early);
        failing = {-failing.most, -failing.least};
        sound = {-sound.most, -sound.least};
      }
      const std::int64_t gap = failing.least - sound.most;
      if (gap < kLeastGap || gap <= failing.width() + sound.width()) continue;
      Swapped one;
      one.early = early;
      one.late = late;
      one.in = sides.failing.front().at(late).in;
      const Spread near = between(sides.near, late, early);
      one.only_bug = near.most >= near.least && near.most < 0;
      const bool hit = sides.hit.contains(kinds[late].node) || sides.hit.contains(kinds[early].node);
      one.nearness = hit ? Nearness::same_node : Nearness::elsewhere;
      one.weight = kFullWeight * (hit ? 1 : 0.8) * (sides.near.empty() || one.only_bug ? 1 : 0.8);
      one.after_ns = middle_of(sides.failing, late);
      found.push_back(one);
    }
  }
  const std::size_t n = sides.failing.size() + sides.sound.size();
  const auto balanced =
      static_cast<double>(std::count_if(noise.begin(), noise.end(), [&](const std::vector<bool>& pattern) {
        const auto have = static_cast<std::size_t>(std::count(pattern.begin(), pattern.end(), true));
        return have + 1 >= std::min(sides.failing.size(), sides.sound.size()) &&
               have <= std::max(sides.failing.size(), sides.sound.size()) + 1;
      }));
  if (kFarApart * (balanced / 3 + 0.5) * 2 / ways(n, sides.failing.size()) > kMostChance) return {};
  std::stable_sort(found.begin(), found.end(), [](const Swapped& a, const Swapped& b) {
    if (a.nearness != b.nearness) return a.nearness < b.nearness;
    return std::tie(a.after_ns, a.late, a.early) < std::tie(b.after_ns, b.late, b.early);
  });
  std::vector<Swapped> out;
  std::set<std::pair<std::string, std::string>> nodes;
  for (const Swapped& one : found)
    if (out.size() < kMostSwapped && nodes.emplace(kinds[one.late].node, kinds[one.early].node).second)
      out.push_back(one);
  return out;
}

}  // namespace rose::explain
