// Repeated runs of a schedule, to measure its replay rate.
#pragma once

#include <functional>
#include <vector>

#include "replay/store.h"
#include "schedule/rate.h"

namespace rose::replay {

struct Repeated {
  schedule::Tally tally;
  std::vector<Run> runs;  // without traces
  double seconds = 0;
};

// Makes `runs` runs, up to `jobs` of them in parallel. Calls `each` after every run, in the order of the runs' numbers.
[[nodiscard]] Result<Repeated> repeat(const config::Config& config, const schedule::Schedule& schedule, int runs,
                                      int jobs, RunOptions options, RunStore& store,
                                      const std::function<void(const Run&, const schedule::Tally&)>& each);

// Fails with ErrorKind::input if runs of this deployment cannot be made in parallel, because nodes on the host's
// network would use the same ports.
[[nodiscard]] Result<void> check_jobs(const config::Config& config, int jobs);

// Makes one run of each schedule, all in parallel, numbered from options.number. The results have the order of the
// schedules. If `decides` returns true for a run, the runs after it are no longer needed. They are stopped and leave
// nothing, and their results have `stopped` set. The last `ahead` schedules are run in advance, and nothing waits for
// them: these runs are stopped, too, unless they end soon after the others. options.wait_at_most_ns does not apply to
// them. `most_busy`: no more runs than this are busy at a time, and a further run starts when one of them has ended or
// only waits (options.waiting, whose `begin` is set here); 0: all start at once.
[[nodiscard]] std::vector<Result<Run>> run_side_by_side(RunStore& store, const config::Config& config,
                                                        const std::vector<const schedule::Schedule*>& schedules,
                                                        const RunOptions& options,
                                                        const schedule::Decides& decides = {}, std::size_t ahead = 0,
                                                        std::size_t most_busy = 0);

// The result of a run that was stopped, or never begun, because `decides` returned true for another run.
[[nodiscard]] schedule::RunResult stopped_run();

// Makes one run in a directory of `store`, and records it.
[[nodiscard]] Result<Run> run_in(RunStore& store, const config::Config& config, const schedule::Schedule& schedule,
                                 RunOptions options);

}  // namespace rose::replay
