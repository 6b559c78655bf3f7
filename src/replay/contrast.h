// Runs to compare: of a schedule, of the same system without faults, and of schedules that are a little beside it. They
// take turns, so that a machine that grows slower or warmer meanwhile does not tell them apart.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/repeat.h"

namespace rose::replay {

inline constexpr int kParts =
    16;  // of a fault's length, or of the time until it: as near as it is looked for where the bug begins to show

struct Beside {
  schedule::Schedule schedule;
  std::string words;  // "'full': the 2nd call instead of the 1st"
  // Of one that lasts less, or comes earlier: how long, or when, and between what the bug begins to show, in parts of
  // the whole.
  struct Part {
    std::size_t fault = 0;
    std::int64_t whole_ns = 0;
    bool of_time = false;
    bool again = false;  // the latest that did no harm: one run alone says little
    int part = kParts / 2, harmless = 0, harmful = kParts;
  };
  std::optional<Part> part = {};
};
// Each fault of a nth call, or behind the nth occurrence of its last condition, once earlier and once later; a crash or
// pause that comes at a certain step, half as late after the workload began, whatever is going on then; each of several
// faults left out, twice; what lasts, half as long; where there is nothing of all this, a crash that comes at a time,
// half as late. `fired`: of a run. At most `most`, of all sorts some.
[[nodiscard]] std::vector<Beside> beside(const schedule::Schedule& schedule,
                                         const std::vector<schedule::FaultOutcome>& fired, std::size_t most);
// After a run of `tried`, which lasts less or comes earlier: halfway between the most that did no harm and the least
// that did; where that is near enough, the latest that did no harm once more. None: that was all.
[[nodiscard]] std::optional<Beside> other_part(const schedule::Schedule& schedule, const Beside& tried, bool showed);

enum class ContrastRun { schedule, sound, beside, shorter };

struct ContrastOptions {
  int wanted = 5;  // runs that reproduce, and as many sound ones
  int jobs = 1;
  std::size_t besides = 6;  // schedules beside, a run each
  RunOptions run;           // its number is the first run's

  // Runs of the schedule at most, and without faults.
  [[nodiscard]] int most_tries() const { return 2 * wanted + 2; }
  [[nodiscard]] int most_sound() const { return wanted + 2; }
};

struct Contrast {
  int reproduced = 0, missed = 0, inconclusive = 0;  // runs of the schedule
  int sound = 0, sound_hits = 0, sound_unknown = 0;  // runs without faults
  int besides = 0;
  std::string last_reason;                    // of the last run that was inconclusive
  std::vector<std::string> besides_that_hit;  // the bug showed there, too: in words
  int runs = 0;

  void add(const Contrast& later);
};

// `each` gets every run as it is made, with its trace, in the order of the numbers. Nothing but runs of the schedule is
// made before one of them reproduced; when none does, that is all.
[[nodiscard]] Result<Contrast> contrast(
    const config::Config& config, const schedule::Schedule& schedule, const ContrastOptions& options, RunStore& store,
    const std::function<void(Run&& run, ContrastRun what, const std::string& words)>& each);

}  // namespace rose::replay
