#include "explain/habits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace rose::explain {
namespace {

constexpr std::size_t kWithin = 32;      // functions and calls of the thread, from the entry to what comes of it
constexpr std::size_t kFewest = 3;       // entries in each run: fewer tell no habit
constexpr double kAlways = 0.9;          // of the entries: some were let go of between
constexpr double kFurther = 0.82;        // of the weight, for each function that stands between
constexpr std::size_t kMostOfOne = 3;    // functions that one missing thing speaks against, the nearest

struct Entered {
  std::uint32_t function = 0;
  std::size_t at = 0;                    // among the steps of its thread
  std::unordered_set<std::uint32_t> had;
};

struct Known {
  std::size_t times = 0;
  std::size_t between = 0;               // functions, added up
};

bool of_thread(const Step& step, const Kind& kind) {
  return step.tid != 0 && (kind.what == StepKind::function || kind.what == StepKind::call || kind.what == StepKind::failed_call);
}

// What comes of the functions of sound runs, of what is missing in failing ones.
class Rules {
 public:
  Rules(const Kinds& kinds, const std::unordered_set<std::uint32_t>& missing) : kinds_(kinds), missing_(missing) {}

  void add(const Run& run) {
    std::unordered_map<std::int32_t, std::pair<std::size_t, std::vector<Entered>>> threads;  // steps so far, entries among the last ones
    for (const Step& step : run.steps) {
      if (step.ts_ns <= run.cut_ns || step.ts_ns > run.end_ns || !of_thread(step, kinds_[step.kind])) continue;
      auto& [count, recent] = threads[step.tid];
      ++count;
      std::erase_if(recent, [&, now = count](const Entered& one) { return now - one.at > kWithin || one.function == step.kind; });
      if (missing_.contains(step.kind))
        for (std::size_t i = 0; i < recent.size(); ++i) {
          if (!recent[i].had.insert(step.kind).second) continue;
          Known& known = follows_[{recent[i].function, step.kind}];
          ++known.times;
          known.between += recent.size() - 1 - i;
        }
      if (kinds_[step.kind].what != StepKind::function) continue;
      ++entries_[step.kind];
      recent.push_back({step.kind, count, {}});
    }
  }
  [[nodiscard]] std::size_t entries(std::uint32_t function) const {
    const auto found = entries_.find(function);
    return found == entries_.end() ? 0 : found->second;
  }
  [[nodiscard]] const std::map<std::pair<std::uint32_t, std::uint32_t>, Known>& follows() const { return follows_; }

 private:
  const Kinds& kinds_;
  const std::unordered_set<std::uint32_t>& missing_;
  std::unordered_map<std::uint32_t, std::size_t> entries_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Known> follows_;  // function, what comes
};

// How often each function is entered from the cut on, in the run that does so least.
std::unordered_map<std::uint32_t, std::size_t> least_entries(const std::vector<Run>& runs, const Kinds& kinds, Group group) {
  std::unordered_map<std::uint32_t, std::size_t> least;
  bool first = true;
  for (const Run& run : runs) {
    if (run.group != group || (group == Group::failing && fired(run).empty())) continue;
    std::unordered_map<std::uint32_t, std::size_t> here;
    for (const Step& step : run.steps)
      if (step.ts_ns > run.cut_ns && step.ts_ns <= run.end_ns && kinds[step.kind].what == StepKind::function) ++here[step.kind];
    if (std::exchange(first, false)) {
      least = std::move(here);
      continue;
    }
    std::erase_if(least, [&](const auto& one) { return !here.contains(one.first); });
    for (auto& [function, count] : least) count = std::min(count, here.at(function));
  }
  return least;
}

}  // namespace

std::vector<Habit> broken_habits(const std::vector<Run>& runs, const Kinds& kinds, const Comparison& comparison) {
  std::unordered_map<std::uint32_t, double> weights;
  std::unordered_set<std::uint32_t> missing;
  for (const Difference& d : comparison.differences)
    if (const StepKind what = kinds[d.kind].what; d.missing && d.clean && d.next == kNoKind && (what == StepKind::function || what == StepKind::call))
      weights[d.kind] = d.weight, missing.insert(d.kind);
  if (missing.empty()) return {};
  Rules rules(kinds, missing);
  for (const Run& run : runs)
    if (run.group == Group::sound) rules.add(run);
  const auto failing = least_entries(runs, kinds, Group::failing), sound = least_entries(runs, kinds, Group::sound);
  const auto often = [](const std::unordered_map<std::uint32_t, std::size_t>& side, std::uint32_t function) {
    const auto found = side.find(function);
    return found != side.end() && found->second >= kFewest;
  };
  struct Near {
    double between = 0;
    Habit habit;
  };
  std::map<std::uint32_t, std::vector<Near>> of_missing;
  for (const auto& [pair, known] : rules.follows()) {
    const auto& [function, lacks] = pair;
    if (missing.contains(function) || !often(failing, function) || !often(sound, function) || static_cast<double>(known.times) < kAlways * static_cast<double>(rules.entries(function))) continue;
    of_missing[lacks].push_back({static_cast<double>(known.between) / static_cast<double>(known.times), {function, lacks, known.times, weights[lacks]}});
  }
  std::map<std::uint32_t, Habit> best;  // by function
  for (auto& [lacks, all] : of_missing) {
    std::stable_sort(all.begin(), all.end(), [](const Near& a, const Near& b) { return a.between < b.between; });
    if (all.size() > kMostOfOne) all.resize(kMostOfOne);
    double share = 1;
    for (Near& one : all) {
      one.habit.weight *= std::exchange(share, share * kFurther);
      const auto [known, fresh] = best.try_emplace(one.habit.function, one.habit);
      if (!fresh && one.habit.weight > known->second.weight) known->second = one.habit;
    }
  }
  std::vector<Habit> out;
  for (const auto& [function, habit] : best) out.push_back(habit);
  std::stable_sort(out.begin(), out.end(), [](const Habit& a, const Habit& b) { return a.weight > b.weight; });
  return out;
}

}  // namespace rose::explain
