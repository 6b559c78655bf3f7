// Numbers that several parts of the search use for its decisions; constants of a single part are in its own file. A
// yield is the estimated probability that one run reproduces the bug. Only the ratios of yields matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace rose::diagnose {

// --- how likely a fault of a kind is the cause, before anything else is known: what the paper's order says (processes,
// network, calls), as odds. Calls of one class are many, so each has less.
inline constexpr double kOddsProcess = 1.0;  // killed or stopped from outside
inline constexpr double kOddsOwnEnd = 0.9;   // it ended itself, or waited for a disk, and nothing tells why
inline constexpr double kOddsNetwork = 0.8;
inline constexpr double kOddsClock = 0.3;  // clocks are wrong for years and harm nobody
inline constexpr double kOddsClockStep =
    0.7;  // one that is set while all goes wrong, or that a program complains of, is rarer than a process that ends
inline constexpr double kOddsResource = 0.5;   // disk and resource errors: EIO, ENOSPC, EMFILE, ...
inline constexpr double kOddsCall = 0.2;       // errors that are neither those nor everyday ones
inline constexpr double kOddsEveryday = 0.04;  // ENOENT, EEXIST, EINTR, ...
inline constexpr double kOddsNoise = 0.005;    // healthy programs see them all the time
inline constexpr double kOddsProfiled = 0.25;  // times this: the profile has it, too, but far rarer
inline constexpr double kOddsSymptom = 0.02;   // times this: an earlier fault explains it
inline constexpr double kOddsUsual = 0.1;      // times this: it ends or fails like that all the time
inline constexpr double kOddsFatal = 1.5;      // times this: a failed call right after which its node ended itself
inline constexpr double kOddsFirst = 3.0;      // times this: a disk error that came before all other faults
inline constexpr double kNearFew =
    12;  // so many things may have happened since, and it is still as likely; the more, the less
inline constexpr double kNearIncidents =
    3;  // the same, of incidents: of several in one window the last ones are why it was written
inline constexpr std::size_t kUsualFailures =
    3;  // times, each further from the one before than a workload lasts: it fails all the time
inline constexpr double kLikelyCut = 0.6;       // times this: calls between nodes that time out tell of a cut,
inline constexpr double kPerhapsCut = 0.25;     // and this: connections between them that are reset
inline constexpr double kHalfSaid = 0.3;        // below it logs do not say it, it only fits
inline constexpr double kOddsNeverHere = 0.03;  // times this: the survey saw no such call in the test deployment

// --- how what is believed of one fault is divided among the ways to try it. Half of the paper's bugs and most of ours
// need no more than the fault itself; crashes and pauses then need their moment, calls their number.
inline constexpr double kSharePlain = 0.42;       // the faults of an incident, as they were seen
inline constexpr double kShareAlone = 0.20;       // one of several process and network faults
inline constexpr double kSharePart = 0.10;        // half of them, three quarters, ...
inline constexpr double kShareCloser = 0.06;      // closer together than they were
inline constexpr double kShareCloserFits = 0.30;  // the same where the workload here is over before the last of them
inline constexpr double kPointShares[] = {
    0.55, 0.25, 0.20};  // of each point of the workload, where nothing says when the first fault came:
                        // production had been at work for long; while a deployment starts, faults meet something else
inline constexpr double kShareOtherTime = 0.08;    // another time, of what showed the bug by the clock, but too rarely,
inline constexpr double kTimeWasSeen = 0.5;        // and times this, where the evidence says when that was
inline constexpr double kShareLonger = 0.25;       // as long again, of a pause or cut whose length only logs tell
inline constexpr double kShareWider = 0.05;        // a cut that went further than the dump shows
inline constexpr double kShareShape = 0.06;        // another shape of a process or network fault
inline constexpr double kShareContext = 0.30;      // after what came before it
inline constexpr double kContextWithOthers = 0.7;  // of it goes to the fault among the others of its time,
inline constexpr double kContextAlone = 0.5;       // so much at least to the fault alone,
inline constexpr double kFarLess = 2;  // and others that are believed less than one in so many count that much less
inline constexpr double kSharePlace = 0.28;        // at a place after that
inline constexpr double kShareCall = 0.42;         // a failed call, as it was seen
inline constexpr double kShareCallShape = 0.12;    // its next shape; each further one has two thirds of that
inline constexpr double kShareNth = 0.25;          // another call of the kind
inline constexpr double kShareCallContext = 0.06;  // after what came before it
inline constexpr double kShareMixed = 0.15;        // together with the process and network faults
inline constexpr double kShareNeighbours = 0.35;   // with the one of them that it stands next to
inline constexpr double kShareMixedNth = 0.06;     // another call of the kind, after them
inline constexpr double kShareOneCause =
    0.70;  // calls that begin to fail with one resource error at one time, together
inline constexpr double kShareTogether = 0.10;    // two calls that are needed both
inline constexpr double kOnReplica = 0.5;         // times this, on another of the nodes that the host may be
inline constexpr double kShareBefore = 0.03;      // a cut or pause that no log tells of, before what one tells,
inline constexpr double kShareAfterGuess = 0.08;  // what is told, where the node then does what it never does without,
inline constexpr double kShareTwoBefore = 0.012;  // and two such guesses at once
inline constexpr double kShareRare = 0.04;        // shapes that the evidence hints at only: delays, loss, lies of fsync
inline constexpr double kSharePower =
    0.1;  // of such a shape's share goes to a loss of power: who saw the node end lived on, mostly on that machine
inline constexpr double kNextStep = 0.6;     // each further step of one way has so much of the one before
inline constexpr double kPlaceFirst = 0.16;  // of the belief in the places of one context has the first one,
inline constexpr double kPlaceStep = 0.9;    // and each further one so much of the one before: they are many

// --- what a miss means
inline constexpr double kShows = 0.75;      // the right schedule shows the bug in a run
inline constexpr double kAgain = 0.12;      // of a missed schedule's yield is left for another run of it
inline constexpr double kGroupsWork = 0.7;  // failing more than the one right call does not hide the bug

inline constexpr double kLead = 2.0;  // a schedule that showed the bug, but too rarely, is gone on from before all else
inline constexpr double kBesideTimed =
    0.5;  // of its faults, one that waits for an event, beside one that hangs by the clock
inline constexpr double kLeadBelief = 4.0;  // times this, for its faults wherever else they are tried

inline constexpr double kAgainSigns = 3;  // and so many times more when all observables came back
inline constexpr int kMostAgain = 40;     // further runs of schedules that missed, in a search
inline constexpr int kMostRunsOfOne = 3;  // of one schedule

// --- groups
inline constexpr std::size_t kMostGroup = 16;    // one-shot failures armed at once: four runs find the one that counts
inline constexpr std::size_t kMostOldGroup = 8;  // process and network faults of other times in one run
inline constexpr double kInVain = 0.4;           // times this: alone, after it came in a group that showed nothing
inline constexpr std::size_t kFewTogether =
    3;  // so many faults are confirmed as they are; more are narrowed down first
inline constexpr std::size_t kMostTogether = 20;  // faults of one incident in one schedule; the last ones
inline constexpr int kMostNarrowing = 12;         // runs for that

// --- the survey
inline constexpr std::size_t kMostQuestions = 1500;  // the kernel programs hold 2,048 chains
inline constexpr std::size_t kMostSurveyed = 4;      // process faults whose contexts are looked into ahead
inline constexpr double kTooBusy = 2000;             // calls a second: counting them would slow the node down

// --- confirmation, and what is told
inline constexpr double kByChance = 0.05;    // runs with faults must differ from those without so clearly
inline constexpr int kMostInconclusive = 8;  // runs of one schedule, before it is given up
inline constexpr int kMostControls = 12;     // runs without faults, made for that
inline constexpr int kMostTests = 12;        // schedules tested in one search: RateTest's errors add up
inline constexpr int kMostTestsAlike =
    8;  // of them with the same faults: so many errors still add up to less than a tenth
inline constexpr double kLittleHope =
    0.15;  // that a schedule under test reaches the target: below, what promises more comes first
inline constexpr std::size_t kMostNext = 5;  // schedules told of what would be tried next
inline constexpr int kMostUnarmable =
    10;  // schedules in a row that can't be armed, before any could: it is not for them

// --- doubted hits
inline constexpr int kMostOthers = 12;  // runs of others, before a schedule is tested that may show another failure
inline constexpr int kMostAlike =
    24;  // further ones, after it was accepted all the same: as many again, and their test

// --- surer than what was accepted
inline constexpr double kSureRate = 0.9;  // of the test's runs; below, it hangs by something that it does not wait for
inline constexpr int kMostSurer = 24;     // runs for that: what is accepted is good enough, if need be,
inline constexpr double kRunsToCome =
    40;  // and no more than misses cost of so many runs that hit: mends, and the test of them
inline constexpr int kSurerMisses = 1;  // what misses more often is no surer

// --- simplification
inline constexpr double kWorseShare = 0.7;  // of the found rate: a simpler schedule must not be so much worse
inline constexpr double kAsGood = 1.0;      // log likelihood ratio for that: three runs when the found one never misses
inline constexpr double kWorse = -1.3;      // against it: one miss then
inline constexpr double kNeedsFault =
    -2.5;                             // to keep a fault more is asked for: what has nothing to do with it must go
inline constexpr int kMostGate = 14;  // runs of one simpler schedule; undecided, a fault goes and all else stays
inline constexpr int kMostSimplifying = 24;  // runs in all
inline constexpr double kLongRun = 5;        // seconds: of longer runs only as many as finding it took, but
inline constexpr int kFewSimplifying = 8;    // so many at least

}  // namespace rose::diagnose
