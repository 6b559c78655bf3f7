// Limits of the effort of the parts of the search: numbers of runs, sizes of groups, questions of a survey. The weights
// that decide are in weights.h. A yield is the estimated probability that one run of a trial reproduces the bug; only
// the ratios of yields matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "weights/weights.h"

namespace rose::diagnose {

using namespace weights;

// A first fault of unknown time is tried at several points of the workload. Returns the share of the fault's weight
// that the trial at this point gets.
inline double point_share(std::size_t point) {
  return point == 0 ? kPointFirst : point == 1 ? kPointSecond : kPointThird;
}

// --- repeated runs of schedules that missed, because a miss may be chance
inline constexpr int kMostRepeats = 40;    // repeated runs in one search
inline constexpr int kMostRunsOfMiss = 3;  // runs of one schedule, including the first

// --- groups
// Calls of a group, each of which is made to fail once in the same run. Bisection then finds the call that matters in
// four runs (log2 of 16).
inline constexpr std::size_t kMostGroup = 16;
// Process and network faults of earlier incidents in one run.
inline constexpr std::size_t kMostOldGroup = 8;
// A schedule with more faults is narrowed down before it is confirmed.
inline constexpr std::size_t kFewTogether = 3;
// Faults of one incident in one schedule; if there are more, the last ones are kept.
inline constexpr std::size_t kMostTogether = 20;
inline constexpr int kMostNarrowing = 12;  // runs for narrowing one schedule down

// --- the survey
inline constexpr std::size_t kMostQuestions = 1500;  // the kernel programs hold 2,048 chains of conditions
inline constexpr std::size_t kMostSurveyed = 4;      // process faults whose contexts are surveyed in advance
inline constexpr double kTooBusy = 2000;             // calls per second: counting more would slow the node down

// --- confirmation, and what is reported
inline constexpr int kMostInconclusive = 8;  // inconclusive runs of one schedule, after which its test ends
inline constexpr int kMostControls = 12;     // runs without faults, made to compare a schedule with them
inline constexpr int kMostTests = 12;        // schedules screened or tested in one search
// Number of schedules with the same faults that are tested. The error probabilities of this many tests add up to less
// than a tenth.
inline constexpr int kMostTestsOfSameFaults = 8;
inline constexpr std::size_t kMostNext = 5;  // schedules reported as those that would be tried next
// The diagnosis ends if no schedule has been armed yet and this many in a row cannot be armed, because the reason is
// then not in the schedules.
inline constexpr int kMostUnarmable = 10;

// --- schedules that may reproduce another failure than production's
// Runs of other trials before such a schedule is tested.
inline constexpr int kMostOthers = 12;
// Further runs to find a schedule whose failure is more similar to production's, after such a schedule was accepted:
// kMostOthers again, and the same number to test the schedules that are found.
inline constexpr int kMostSimilar = 24;

// --- more reliable schedules than the accepted one
// Runs to find a more reliable schedule; if they find none, the accepted schedule is good enough.
inline constexpr int kMostReliability = 24;
// The final test may be the first to show misses, and by then minimisation may have used up the runs of
// kMostAfterFirst. The search for a more reliable schedule may make this many runs even then, because the misses of an
// unreliable schedule would cost its user more runs later.
inline constexpr int kLeastReliability = 12;
inline constexpr int kReliableMisses = 1;  // a schedule with more misses in its test is not reliable enough

// --- from the first reproduction to the result
// At most this many runs, including the one that reproduced the bug first, unless the found schedule is refuted and the
// search continues. Screening takes 3 to 10 of them, minimisation and rivals take up to kMostSimplifying and
// kMostRivalRuns, and the final test has the rest; it needs 8 if the schedule never misses.
inline constexpr int kMostAfterFirst = 40;
inline constexpr int kLeastDeciding = 16;  // runs that are reserved for the final test
// Runs of one simpler schedule. If they do not decide, the removal of a fault is accepted if one of them reproduced the
// bug, the removal of a fixed time if most of them did, and any other change is rejected.
inline constexpr int kMostGate = 5;
// A run of a simpler schedule takes far longer than the runs that reproduced the bug, and than runs without faults, if
// its workload takes more than twice as long as theirs, plus five seconds. Runs of one schedule differ by less on a
// machine that is ordinarily busy; the absolute part is for workloads of a second.
inline constexpr std::int64_t kFarLonger = 2;
inline constexpr std::int64_t kFarLongerNs = 5 * kSecond;
inline constexpr int kMostSimplifying = 10;    // runs of all simpler schedules
inline constexpr int kMostRivalRuns = 6;       // runs of all other hypotheses
inline constexpr int kMostOfRival = 3;         // runs of each other hypothesis
inline constexpr std::size_t kMostRivals = 2;  // hypotheses to try that no run has tried yet

}  // namespace rose::diagnose
