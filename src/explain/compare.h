// What failing runs do from the fault on that correct runs do not, and the other way round. Each kind of step is scored
// by Ochiai's coefficient (as Abreu, Zoeteweij and van Gemund use it to locate faults, "On the Accuracy of
// Spectrum-based Fault Localization", TAIC PART 2007), lessened by how much it varies among equal runs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/runs.h"

namespace rose::explain {

// A difference that chance explains as often as this is none.
inline constexpr double kMostChance = 0.02;
// How often chance alone makes a difference between that many failing runs and as many others, if there is no noise.
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
  double needless =
      0;  // share of the runs in which less of the fault brought the bug that are in this like correct ones
  double ochiai = 0;
  double noise = 0;     // 0: all equal runs agree; 1: half of them have it
  std::size_t odd = 0;  // failing and correct runs that are not on their side
  bool clean = false;   // all failing runs, however long the fault lasts, no sound one; or the other way round
  double earlier = 0;   // share of the correct runs that have it before the moment of the fault: it is nothing new
  bool harmless =
      false;  // runs in which the fault did no harm are in this like failing ones, more often than correct ones are
  bool only_bug = false;  // clean, and there are runs in which the fault did no harm, all like the correct ones
  Nearness nearness = Nearness::elsewhere;
  std::int64_t after_ns = 0;   // first seen so long after the fault (missing: in correct runs)
  std::uint32_t in = kNoKind;  // the function that its thread was in
  double strength = 0;         // how well it tells the runs apart, how near, and whether the bug shows without it; 0..1
  double weight = 0;           // that, and how new it is
};

// In all failing runs `late` comes behind `early`, in all correct runs ahead of it, and by far.
struct Swapped {
  std::uint32_t early = 0, late = 0;  // kinds
  std::uint32_t in = kNoKind;         // the function that the late one's thread was in
  bool only_bug = false;  // there are runs in which the fault did no harm, and they have the order of correct ones
  Nearness nearness = Nearness::elsewhere;
  std::int64_t after_ns = 0;  // when the late one comes in failing runs, after the fault
  double weight = 0;
};

struct Comparison {
  std::vector<Difference> differences;  // clean ones and nearly so, heaviest first; none when chance explains them
  std::vector<Swapped> orders;          // as swapped() has them; compare() has none
  bool enough = true;                   // there were runs on both sides
  double chance = 1;                    // that noise alone makes one that is clean
  bool hidden = false;  // something has all runs but one on their sides, and these are too few to believe it
  bool unproven =
      false;  // nothing comes with the bug alone, but what threads do next, and so few runs do not prove that
  std::size_t noisy = 0;       // kinds that equal runs disagree on
  std::size_t unsure = 0;      // functions that were entered too often to be watched
  double exchange_chance = 1;  // as `chance`, of what nodes exchange
  [[nodiscard]] bool none() const { return differences.empty() && orders.empty(); }
};

// There is something that comes with the bug alone, beside what threads do next.
[[nodiscard]] bool of_bug_alone(const std::vector<Difference>& differences);

// After align(). Runs without a fault that fired are never failing here.
[[nodiscard]] Comparison compare(const std::vector<Run>& runs, const Kinds& kinds, const Merged& merged = {});

}  // namespace rose::explain
