// What failing runs do after the fault that correct runs do not, and the other way round. Each kind of step is scored
// by Ochiai's coefficient (as Abreu, Zoeteweij and van Gemund use it to locate faults, "On the Accuracy of
// Spectrum-based Fault Localization", TAIC PART 2007), reduced by how much it varies among equal runs. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/runs.h"

namespace rose::explain {

// A difference that chance explains with at least this probability is ignored.
inline constexpr double kMostChance = 0.02;
// The probability that chance alone makes a difference between this many failing runs and as many others, if there is
// no noise.
[[nodiscard]] double least_chance(int runs);
// The number of runs of each side below which no difference is significant.
[[nodiscard]] int fewest_runs();

enum class Nearness { same_thread, same_node, elsewhere };

struct Difference {
  std::uint32_t kind = 0;
  std::uint32_t next = kNoKind;  // a succession: `kind`, then `next` on the same thread
  bool missing = false;          // failing runs lack it
  bool again = false;            // ... though they did it shortly before the fault: correct runs do it again and again
  double failing = 0, sound = 0, near = 0;  // shares of the runs that have it
  std::size_t failing_runs = 0, sound_runs = 0,
              near_runs = 0;  // of these: for a value, the runs that were asked for it
  double needless =
      0;  // share of the runs with a shorter fault that reproduced the bug and in this respect are like correct ones
  double ochiai = 0;
  double noise = 0;     // 0: all equal runs agree; 1: half of them have it
  std::size_t odd = 0;  // number of failing and correct runs that are exceptions on their side
  // The share of all ways to label as many runs as failing in which some step separates both sides as well. Nothing for
  // successions, values and messages between nodes.
  std::optional<double> by_chance;
  bool clean = false;  // all failing runs, however long the fault lasts, no sound one; or the other way round
  double earlier = 0;  // share of the correct runs that have it before the moment of the fault: it is nothing new
  bool harmless =
      // runs in which the fault did no harm are in this respect like failing ones, more often than correct runs are
      false;
  // clean, and there are harmless runs with the fault, all like the correct ones in this respect
  bool only_bug = false;
  Nearness nearness = Nearness::elsewhere;
  std::int64_t after_ns = 0;   // first seen this long after the fault (missing: in correct runs)
  std::uint32_t in = kNoKind;  // the function that its thread was in
  double strength = 0;         // how well it separates the runs, how near, and whether the bug occurs without it; 0..1
  double weight = 0;           // that, and how new it is
};

// `late` comes after `early` in all failing runs and before it in all correct runs, by a large margin.
struct Swapped {
  std::uint32_t early = 0, late = 0;  // kinds
  std::uint32_t in = kNoKind;         // the function that the late one's thread was in
  bool only_bug = false;              // there are harmless runs with the fault, and they have the order of correct ones
  Nearness nearness = Nearness::elsewhere;
  std::int64_t after_ns = 0;  // when `late` happens in failing runs, after the fault
  double weight = 0;
};

struct Comparison {
  // clean ones and nearly clean ones, heaviest first; empty if chance explains them
  std::vector<Difference> differences;
  std::vector<Swapped> orders;  // filled by swapped(), not by compare()
  bool enough = true;           // there were runs on both sides
  double chance = 1;            // probability that noise alone makes a clean difference
  bool hidden = false;     // something separates the sides except for one run, and there are too few runs to trust it
  bool unproven = false;   // only the order of threads separates the bug, and there are too few runs to prove it
  std::size_t noisy = 0;   // kinds that equal runs disagree on
  std::size_t unsure = 0;  // functions that were entered too often to be watched
  double exchange_chance = 1;  // like `chance`, for messages between nodes
  [[nodiscard]] bool none() const { return differences.empty() && orders.empty(); }
};

[[nodiscard]] std::string of_runs(double share, std::size_t runs);  // "2 of 3"

// True if something other than successions occurs with the bug only.
[[nodiscard]] bool of_bug_alone(const std::vector<Difference>& differences);

// Call after align(). Runs without a fault that fired never count as failing.
[[nodiscard]] Comparison compare(const std::vector<Run>& runs, const Kinds& kinds, const Merged& merged = {});

}  // namespace rose::explain
