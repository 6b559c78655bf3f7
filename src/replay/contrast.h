// Runs to compare: of a schedule, of the same system without faults, and of schedules that are a little beside it. They take turns,
// so that a machine that grows slower or warmer meanwhile does not tell them apart.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "replay/repeat.h"

namespace rose::replay {

struct Beside {
  schedule::Schedule schedule;
  std::string words;  // "'full': the 2nd call instead of the 1st"
};
// Each fault of a nth call, or behind the nth occurrence of its last condition, once earlier and once later; a crash or pause that
// comes at a certain step, half as late after the workload began, whatever is going on then; each of several faults left out; what
// lasts, half, a quarter and three quarters as long. `fired`: of a run. At most `most`, of all sorts some.
[[nodiscard]] std::vector<Beside> beside(const schedule::Schedule& schedule, const std::vector<schedule::FaultOutcome>& fired, std::size_t most);

enum class ContrastRun { schedule, sound, beside };

struct ContrastOptions {
  int wanted = 5;               // runs that reproduce, and as many sound ones
  int jobs = 1;
  std::size_t besides = 6;      // schedules beside, a run each
  RunOptions run;               // its number is the first run's

  // Runs of the schedule at most, and without faults.
  [[nodiscard]] int most_tries() const { return 2 * wanted + 2; }
  [[nodiscard]] int most_sound() const { return wanted + 2; }
};

struct Contrast {
  int reproduced = 0, missed = 0, inconclusive = 0;  // runs of the schedule
  int sound = 0, sound_hits = 0, sound_unknown = 0;  // runs without faults
  int besides = 0;
  std::string last_reason;                           // of the last run that was inconclusive
  std::vector<std::string> besides_that_hit;         // the bug showed there, too
  int runs = 0;

  void add(const Contrast& later);
};

// `each` gets every run as it is made, with its trace, in the order of the numbers. Nothing but runs of the schedule is made
// before one of them reproduced; when none does, that is all.
[[nodiscard]] Result<Contrast> contrast(const config::Config& config, const schedule::Schedule& schedule, const ContrastOptions& options, RunStore& store,
                                        const std::function<void(Run&& run, ContrastRun what, const std::string& words)>& each);

}  // namespace rose::replay
