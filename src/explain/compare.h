// Finds what failing runs do after the fault that correct runs do not, and the reverse. Each kind of step is scored by
// Ochiai's coefficient (as Abreu, Zoeteweij and van Gemund use it to locate faults, "On the Accuracy of Spectrum-based
// Fault Localization", TAIC PART 2007). The score is reduced by how much the step varies among equal runs, that is,
// among runs of one side (failing or correct). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "explain/runs.h"

namespace rose::explain {

// A difference is ignored if the probability that chance explains it is higher than this.
inline constexpr double kMostChance = 0.02;
// The probability that chance alone makes a difference between this many failing runs and the same number of correct
// runs, if there is no noise.
[[nodiscard]] double least_chance(int runs);
// The number of runs of each side below which no difference is significant.
[[nodiscard]] int fewest_runs();

enum class Nearness { same_thread, same_node, elsewhere };

struct Difference {
  std::uint32_t kind = 0;
  std::uint32_t next = kNoKind;  // if set, the difference is a succession: `kind`, then `next` on the same thread
  bool missing = false;          // failing runs lack the step
  // the step is missing after the fault, where correct runs repeat it, although failing runs made it shortly before
  bool again = false;
  double failing = 0, sound = 0, near = 0;  // shares of the runs that have the step
  // numbers of compared runs; for a value, only of runs that were asked for it
  std::size_t failing_runs = 0, sound_runs = 0, near_runs = 0;
  // of the runs in which a shorter fault reproduced the bug: the share that is like correct runs with regard to this
  // step
  double needless = 0;
  double ochiai = 0;
  double noise = 0;  // 0: all equal runs agree; 1: half of them have the step
  // number of runs that contradict the difference: failing runs without the step and correct runs with it; if the step
  // is missing, the reverse
  std::size_t odd = 0;
  // The result of a permutation test: as many runs as have failed are labelled as failing, in all possible ways. For
  // this share of the ways, some step separates the two sides at least as clearly as this step does with the true
  // labels. Not set for successions, values and messages between nodes.
  std::optional<double> by_chance;
  // Either all failing runs have the step and no correct run does, or the reverse, and this also holds if runs in which
  // a shorter fault reproduced the bug count as failing runs.
  bool clean = false;
  // share of the correct runs that have the step before the moment of the fault, so that the step is nothing new
  double earlier = 0;
  // Runs in which the fault did no harm have the step (or lack it, if it is missing) clearly more often than correct
  // runs.
  bool harmless = false;
  // The difference is clean, there are runs with the fault but without harm, and all of these are like correct runs in
  // this respect.
  bool only_bug = false;
  Nearness nearness = Nearness::elsewhere;
  // time from the fault to the step's first occurrence; in correct runs, if the step is missing
  std::int64_t after_ns = 0;
  std::uint32_t in = kNoKind;  // the function that the step's thread had entered last
  // how well the step separates the runs, how near it is to the fault, and whether the bug also occurs without it; 0..1
  double strength = 0;
  double weight = 0;  // the strength, reduced if correct runs have the step earlier
};

// `late` comes after `early` in all failing runs and before it in all correct runs, by a large margin.
struct Swapped {
  std::uint32_t early = 0, late = 0;  // kinds
  std::uint32_t in = kNoKind;         // the function that the thread of `late` had entered last
  bool only_bug = false;  // there are runs with the fault but without harm; they have the order of correct runs
  Nearness nearness = Nearness::elsewhere;
  std::int64_t after_ns = 0;  // time from the fault to `late` in failing runs
  double weight = 0;
};

struct Comparison {
  // clean and nearly clean differences, heaviest first; without those that chance may explain
  std::vector<Difference> differences;
  std::vector<Swapped> orders;  // filled by swapped(), not by compare()
  bool enough = true;           // there were runs on both sides
  double chance = 1;            // probability that noise alone makes a clean difference
  bool hidden = false;  // some step separates the sides except for one run, and there are too few runs to trust it
  // The only steps that occur with the bug and never without it are successions, and there are too few runs to prove
  // that this is no chance.
  bool unproven = false;
  // Queries for which some value separates the sides, except for at most one run, but for which there are too few runs
  // to trust this.
  std::set<std::uint32_t> undecided;
  std::size_t noisy = 0;       // kinds of steps in which equal runs differ
  std::size_t unsure = 0;      // functions that were entered too often to be watched
  double exchange_chance = 1;  // like `chance`, for messages between nodes
  [[nodiscard]] bool none() const { return differences.empty() && orders.empty(); }
};

[[nodiscard]] std::string of_runs(double share, std::size_t runs);  // "2 of 3"

// True if a difference other than a succession occurs only with the bug.
[[nodiscard]] bool of_bug_alone(const std::vector<Difference>& differences);

// Call after align(). A run in which no fault fired never counts as failing.
[[nodiscard]] Comparison compare(const std::vector<Run>& runs, const Kinds& kinds, const Merged& merged = {});

}  // namespace rose::explain
