// Repeated runs of one schedule: its replay rate.
#pragma once

#include <functional>
#include <vector>

#include "replay/store.h"
#include "schedule/rate.h"

namespace rose::replay {

struct Repeated {
  schedule::Tally tally;
  std::vector<Run> runs;  // without their traces
  double seconds = 0;
};

// `runs` runs of the schedule, one after the other; `each` is called after every run.
[[nodiscard]] Result<Repeated> repeat(const config::Config& config, const schedule::Schedule& schedule, int runs,
                                      RunOptions options, RunStore& store,
                                      const std::function<void(const Run&, const schedule::Tally&)>& each);

// Makes one run in a directory of `store` and records it.
[[nodiscard]] Result<Run> run_in(RunStore& store, const config::Config& config, const schedule::Schedule& schedule,
                                 RunOptions options);

}  // namespace rose::replay
