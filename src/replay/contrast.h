// Makes runs to compare: of a schedule, of the system without faults, and of slightly changed schedules (variants).
// Runs of the three kinds alternate, so that slow changes of the machine's speed do not appear as differences.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/repeat.h"

namespace rose::replay {

// A fault's length or start time is divided into this many parts. It is the resolution of the search for the point at
// which the bug begins to occur.
inline constexpr int kParts = 16;

struct Beside {
  schedule::Schedule schedule;
  std::string words;  // describes the variant: "'full': the 2nd call instead of the 1st"
  // For a shorter or earlier fault: the length or time in this variant, and the bounds between which the bug begins to
  // occur. The unit is 1/kParts of the whole length or time.
  struct Part {
    std::size_t fault = 0;
    std::int64_t whole_ns = 0;
    bool of_time = false;
    bool again = false;  // a repetition of the largest harmless part, because a single run is weak evidence
    int part = kParts / 2, harmless = 0, harmful = kParts;
  };
  std::optional<Part> part = {};
};
// Makes the variants: for a fault with a call or condition count, the fault at the next and at the previous occurrence;
// for a crash or pause with conditions, the fault at half its time without conditions; for several faults, the schedule
// without one of them (for each fault, twice); for a lasting fault, half its length. If none of this applies: for a
// crash at a given time, the crash at half that time. `fired`: the outcomes of a run that reproduced the bug. Returns
// at most `most` variants, which are taken from the kinds in turn.
[[nodiscard]] std::vector<Beside> beside(const schedule::Schedule& schedule,
                                         const std::vector<schedule::FaultOutcome>& fired, std::size_t most);
// Call this after a run of the shorter or earlier variant `tried`; `showed`: the bug occurred in it. Returns the
// variant halfway between the largest harmless and the smallest harmful part. When no part is left between these,
// returns the largest harmless part of a time once more. Returns nothing when the search is complete.
[[nodiscard]] std::optional<Beside> other_part(const schedule::Schedule& schedule, const Beside& tried, bool showed);

enum class ContrastRun { schedule, sound, beside, shorter };

struct ContrastOptions {
  int wanted = 5;  // number of reproducing runs to make, and of correct runs
  int jobs = 1;
  std::size_t besides = 6;  // number of variants; each is run once
  RunOptions run;           // options of the runs; `number` is that of the first run

  // The most runs of the schedule, and the most runs without faults. If the first `wanted` runs of the schedule are all
  // inconclusive, no further runs of it are made.
  [[nodiscard]] int most_tries() const { return 2 * wanted + 2; }
  [[nodiscard]] int most_sound() const { return wanted + 2; }
};

struct Contrast {
  int reproduced = 0, missed = 0, inconclusive = 0;  // numbers of runs of the schedule, by verdict
  int sound = 0, sound_hits = 0, sound_unknown = 0;  // numbers of runs without faults, by the oracle's answer
  int besides = 0;
  std::string last_reason;                    // reason of the last inconclusive run
  std::vector<std::string> besides_that_hit;  // variants that reproduced the bug
  int runs = 0;

  void add(const Contrast& later);
};

// `each` receives every run with its trace, in the order of the runs' numbers. Until the bug is reproduced for the
// first time, only the schedule is run. If it is never reproduced, no other runs are made.
[[nodiscard]] Result<Contrast> contrast(
    const config::Config& config, const schedule::Schedule& schedule, const ContrastOptions& options, RunStore& store,
    const std::function<void(Run&& run, ContrastRun what, const std::string& words)>& each);

}  // namespace rose::replay
