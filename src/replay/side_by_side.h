// How many runs of a deployment this machine can make in parallel without changing their behaviour. Measured in runs
// without faults: first one alone, then several at once, whose timing must stay in the range of the first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "replay/store.h"

namespace rose::replay {

// The timing that parallel runs must stay within, learnt from control runs. Zero: nothing is known, every run fits.
struct TimingRange {
  std::int64_t ready_ns = 0;     // the longest time until all nodes of a run are ready
  std::int64_t workload_ns = 0;  // the longest workload of a run without faults

  // Widens the range to include this run.
  void add(const RunLoad& load);
  // Why the run is outside the range; "" if it is inside. The duration of the workload is compared only if `faults` is
  // false, because faults may slow a workload down; the time until the nodes are ready is always compared.
  [[nodiscard]] std::string outside(const RunLoad& load, bool faults) const;
};

// Why runs of this deployment cannot be made in parallel at all; "" if no reason is known. Checks the configuration
// only: what runs write outside their folders is compared in shared_path().
[[nodiscard]] std::string never_side_by_side(const config::Config& config);

// A path outside the run directories that nodes changed in both runs, with the node's name ("n1 writes /var/x"); "" if
// there is none. Such runs would interfere through these files.
[[nodiscard]] std::string shared_path(const config::Config& config, const Run& one, const Run& other);

// An upper bound of the number of runs like this one that the machine's processors and free memory allow.
[[nodiscard]] int fitting_runs(const RunLoad& load, int processors, std::uint64_t free_memory, int most);

inline constexpr int kMostAutomaticJobs = 8;

struct SideBySide {
  int jobs = 1;
  TimingRange range;
  std::string words;              // for people: "4: at 4 in parallel ... ", or why only one
  std::vector<Run> control_runs;  // those inside the range; they can serve as control runs of a search
  int next_number = 1;            // of the next run in `store`
};

// Makes the control runs, numbered from options.number. Errors are those of run_in(). `jobs` is 1 when the control run
// itself is not usable (the oracle hits, the run is inconclusive): the caller's own control run reports that.
[[nodiscard]] Result<SideBySide> measure_side_by_side(RunStore& store, const config::Config& config,
                                                      const schedule::Schedule& no_faults, RunOptions options);

// The number of parallel runs for a command with --jobs auto. Measures it by runs in a store of its own, and reports
// the result.
[[nodiscard]] Result<int> jobs_for(const config::Config& config, RunOptions options);

}  // namespace rose::replay
