// Upper limits of the effort that parts of the search make: runs, groups, questions. The weights that decide are in
// weights.h. A yield is the estimated probability that one run reproduces the bug. Only the ratios of yields matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "diagnose/weights.h"

namespace rose::diagnose {

// The share of each point of the workload, if the time of the first fault is unknown.
inline double point_share(std::size_t point) {
  return point == 0 ? kPointFirst : point == 1 ? kPointSecond : kPointThird;
}

// --- what a miss means
inline constexpr int kMostAgain = 40;     // further runs of schedules that missed, in a search
inline constexpr int kMostRunsOfOne = 3;  // of one schedule

// --- groups
inline constexpr std::size_t kMostGroup = 16;    // one-shot failures armed at once: four runs find the one that counts
inline constexpr std::size_t kMostOldGroup = 8;  // process and network faults of other times in one run
inline constexpr std::size_t kFewTogether =
    3;  // up to this many faults are confirmed together; more are narrowed down first
inline constexpr std::size_t kMostTogether = 20;  // faults of one incident in one schedule; the last ones are kept
inline constexpr int kMostNarrowing = 12;         // runs for that

// --- the survey
inline constexpr std::size_t kMostQuestions = 1500;  // the kernel programs hold 2,048 chains
inline constexpr std::size_t kMostSurveyed = 4;      // process faults whose contexts are surveyed in advance
inline constexpr double kTooBusy = 2000;             // calls a second: counting them would slow the node down

// --- confirmation, and what is reported
inline constexpr int kMostInconclusive = 8;  // runs of one schedule before it is given up
inline constexpr int kMostControls = 12;     // runs without faults, made for that
inline constexpr int kMostTests = 12;        // schedules screened or tested in one search
inline constexpr int kMostTestsAlike =
    8;  // of them with the same faults: the error probabilities of this many tests still add up to less than a tenth
inline constexpr std::size_t kMostNext = 5;  // schedules reported as those that would be tried next
inline constexpr int kMostUnarmable =
    10;  // schedules in a row that cannot be armed, before any could: the fault is not in the schedules

// --- doubted hits
// runs of other trials, before a schedule that may reproduce another failure is tested
inline constexpr int kMostOthers = 12;
inline constexpr int kMostAlike =
    24;  // further runs once it has been accepted in spite of the doubt: as many again, and the test of their schedules

// --- more reliable schedules than the accepted one
inline constexpr int kMostSurer = 24;  // runs for that; if none is found, the accepted schedule is good enough
// Misses show only in the final test, after minimisation has used up runs: this many more are allowed beyond
// kMostAfterFirst. A schedule that misses costs its user more runs than these.
inline constexpr int kLeastSurer = 12;
inline constexpr int kSurerMisses = 1;  // a schedule that misses more often is not more reliable

// --- from the first reproduction to the result
// At most this many runs, including the first, unless the found schedule is refuted and the search continues. Screening
// takes 3 to 10 of them, minimising and rivals what kMostSimplifying and kMostRivalRuns say, and the final test has the
// rest: 8 if it never misses.
inline constexpr int kMostAfterFirst = 40;
inline constexpr int kLeastDeciding = 16;    // runs that are kept for the test that decides
inline constexpr int kMostGate = 5;          // runs of one simpler schedule; undecided, a fault goes and all else stays
inline constexpr int kMostSimplifying = 10;  // runs in all
inline constexpr int kMostRivalRuns = 6;     // runs of other hypotheses in all,
inline constexpr int kMostOfRival = 3;       // of each,
inline constexpr std::size_t kMostRivals = 2;  // and this many that no run had tried before

}  // namespace rose::diagnose
