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

// A difference is ignored if the probability that chance explains it is higher than this.
inline constexpr double kMostChance = 0.02;
// The probability that chance alone makes a difference between this many failing runs and as many correct ones, if
// there is no noise.
[[nodiscard]] double least_chance(int runs);
// The number of runs of each side below which no difference is significant.
[[nodiscard]] int fewest_runs();

enum class Nearness { same_thread, same_node, elsewhere };

struct Difference {
  std::uint32_t kind = 0;
  std::uint32_t next = kNoKind;  // a succession: `kind`, then `next` on the same thread
  bool missing = false;          // failing runs lack it
  bool again = false;  // ... although they did it shortly before the fault, because correct runs do it repeatedly
  double failing = 0, sound = 0, near = 0;  // shares of the runs that have it
  std::size_t failing_runs = 0, sound_runs = 0,
              near_runs = 0;  // numbers of these runs; for a value, of those that were asked for it
  double needless =
      // share of the runs in which a shorter fault reproduced the bug and that are like correct ones in this respect
      0;
  double ochiai = 0;
  double noise = 0;     // 0: all equal runs agree; 1: half of them have it
  std::size_t odd = 0;  // number of failing and correct runs that are exceptions on their side
  // If as many runs as failed are labelled as failing in all possible ways: the share of the ways in which some step
  // separates the two sides as well as this one. Not set for successions, values and messages between nodes.
  std::optional<double> by_chance;
  // all failing runs have it, however long the fault lasts, and no correct run; or the other way round
  bool clean = false;
  // share of the correct runs that have it before the moment of the fault, so that it is nothing new
  double earlier = 0;
  bool harmless =
      // runs in which the fault did no harm are like failing ones in this respect, and more often than correct runs are
      false;
  // clean, and there are runs with the fault but without harm, all of which are like the correct ones in this respect
  bool only_bug = false;
  Nearness nearness = Nearness::elsewhere;
  std::int64_t after_ns = 0;   // time from the fault to its first occurrence (missing: in correct runs)
  std::uint32_t in = kNoKind;  // the function in which its thread was
  double strength = 0;         // how well it separates the runs, how near, and whether the bug occurs without it; 0..1
  double weight = 0;           // the strength, and less if correct runs have it earlier
};

// `late` comes after `early` in all failing runs and before it in all correct runs, by a large margin.
struct Swapped {
  std::uint32_t early = 0, late = 0;  // kinds
  std::uint32_t in = kNoKind;         // the function in which the thread of `late` was
  bool only_bug = false;  // there are runs with the fault but without harm, and they have the order of correct ones
  Nearness nearness = Nearness::elsewhere;
  std::int64_t after_ns = 0;  // time from the fault to `late` in failing runs
  double weight = 0;
};

struct Comparison {
  // clean and nearly clean differences, heaviest first; empty if chance explains them
  std::vector<Difference> differences;
  std::vector<Swapped> orders;  // filled by swapped(), not by compare()
  bool enough = true;           // there were runs on both sides
  double chance = 1;            // probability that noise alone makes a clean difference
  bool hidden = false;     // some step separates the sides except for one run, and there are too few runs to trust it
  bool unproven = false;   // only successions occur with the bug alone, and there are too few runs to prove it
  std::size_t noisy = 0;   // kinds of steps in which equal runs differ
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
