// Makes runs to compare: of a schedule, of the system without faults, and of slightly changed schedules (variants).
// They alternate, so that slow changes of the machine's speed do not appear as differences.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/repeat.h"

namespace rose::replay {

// Parts of a fault's length or start time: the resolution of the search for the point where the bug begins to occur.
inline constexpr int kParts = 16;

struct Beside {
  schedule::Schedule schedule;
  std::string words;  // "'full': the 2nd call instead of the 1st"
  // For a shorter or earlier fault: its length or time, and the bounds between which the bug begins to occur, in kParts
  // of the whole.
  struct Part {
    std::size_t fault = 0;
    std::int64_t whole_ns = 0;
    bool of_time = false;
    bool again = false;  // a repetition of the largest harmless part, because a single run is weak evidence
    int part = kParts / 2, harmless = 0, harmful = kParts;
  };
  std::optional<Part> part = {};
};
// The variants: each fault with a call or condition count, once earlier and once later; a crash or pause with
// conditions, at half its time without them; each of several faults removed, twice; lasting faults at half their
// length; if none of this applies, a crash at a certain time at half that time. `fired`: outcomes of a run. Returns
// at most `most` variants, of all kinds.
[[nodiscard]] std::vector<Beside> beside(const schedule::Schedule& schedule,
                                         const std::vector<schedule::FaultOutcome>& fired, std::size_t most);
// Called after a run of the shorter or earlier variant `tried`. Returns the variant halfway between the largest
// harmless and the smallest harmful part; when these are close enough, the largest harmless one again. Nothing when the
// search is complete.
[[nodiscard]] std::optional<Beside> other_part(const schedule::Schedule& schedule, const Beside& tried, bool showed);

enum class ContrastRun { schedule, sound, beside, shorter };

struct ContrastOptions {
  int wanted = 5;  // reproducing runs to make, and as many correct ones
  int jobs = 1;
  std::size_t besides = 6;  // variants, one run each
  RunOptions run;           // its number is that of the first run

  // Upper limits for runs of the schedule and without faults. If the first `wanted` runs of the schedule are all
  // inconclusive, no further ones are made.
  [[nodiscard]] int most_tries() const { return 2 * wanted + 2; }
  [[nodiscard]] int most_sound() const { return wanted + 2; }
};

struct Contrast {
  int reproduced = 0, missed = 0, inconclusive = 0;  // runs of the schedule
  int sound = 0, sound_hits = 0, sound_unknown = 0;  // runs without faults
  int besides = 0;
  std::string last_reason;                    // reason of the last inconclusive run
  std::vector<std::string> besides_that_hit;  // variants that reproduced the bug
  int runs = 0;

  void add(const Contrast& later);
};

// `each` receives every run with its trace, in the order of their numbers. Before the first reproducing run, only the
// schedule is run; if it never reproduces the bug, no other runs are made.
[[nodiscard]] Result<Contrast> contrast(
    const config::Config& config, const schedule::Schedule& schedule, const ContrastOptions& options, RunStore& store,
    const std::function<void(Run&& run, ContrastRun what, const std::string& words)>& each);

}  // namespace rose::replay
