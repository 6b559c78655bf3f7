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

// `runs` runs of the schedule, up to `jobs` side by side; `each` is called after every run, in the order of their
// numbers.
[[nodiscard]] Result<Repeated> repeat(const config::Config& config, const schedule::Schedule& schedule, int runs,
                                      int jobs, RunOptions options, RunStore& store,
                                      const std::function<void(const Run&, const schedule::Tally&)>& each);

// Error (input) when runs of this deployment cannot go side by side: nodes that share the host's network
// would fight for their ports.
[[nodiscard]] Result<void> check_jobs(const config::Config& config, int jobs);

// One run of each schedule, all at once, numbered from options.number on; one result each, in their order.
[[nodiscard]] std::vector<Result<Run>> run_side_by_side(RunStore& store, const config::Config& config,
                                                        const std::vector<const schedule::Schedule*>& schedules,
                                                        const RunOptions& options);

// Makes one run in a directory of `store` and records it.
[[nodiscard]] Result<Run> run_in(RunStore& store, const config::Config& config, const schedule::Schedule& schedule,
                                 RunOptions options);

}  // namespace rose::replay
