// Determines how many runs of a deployment this machine can make in parallel without changing their behaviour. It makes
// runs without faults, first one alone, then several at once. The timing of the parallel runs must stay in the range of
// the run that was made alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "replay/store.h"

namespace rose::replay {

// The timing within which parallel runs must stay, learnt from control runs. If a value is zero, nothing is known, and
// every run is in the range.
struct TimingRange {
  std::int64_t ready_ns = 0;     // the longest time until all nodes of a run are ready
  std::int64_t workload_ns = 0;  // the longest duration of the workload in a run without faults

  // Widens the range to include this run.
  void add(const RunLoad& load);
  // Says why the run is outside the range; "" if it is inside. The time until the nodes are ready is always compared.
  // The duration of the workload is compared only if `faults` is false, because faults may slow a workload down.
  [[nodiscard]] std::string outside(const RunLoad& load, bool faults) const;
  // How far this run, made without faults, is outside the range. The time until its nodes were ready and the duration
  // of its workload are divided by the longest such time in the range; returns the larger quotient. It is at most 1 if
  // the run is inside the range.
  [[nodiscard]] double excess(const RunLoad& load) const;
};

// The reason why runs of this deployment can never be made in parallel; "" if none is known. Checks only the
// configuration; shared_path() compares what runs write outside their folders.
[[nodiscard]] std::string never_side_by_side(const config::Config& config);

// The paths outside the run's directory that nodes changed, each with the name of the node. Contains only paths in the
// machine's own file system, as the trace of the run shows them. Paths that contain the id of their process, and files
// without a name (O_TMPFILE), are left out, because no other process uses them.
using ChangedOutside = std::map<std::string, std::string>;
[[nodiscard]] ChangedOutside changed_outside(const config::Config& config, const Run& run);
// A path that nodes changed in both runs, with the name of the node ("n1 writes /var/x in every run"); "" if there is
// none. Runs with such a path would interfere with each other.
[[nodiscard]] std::string shared_path(const ChangedOutside& one, const ChangedOutside& other);

// An upper bound for the number of parallel runs with this load: the machine's processors and free memory suffice for
// them, and their nodes can become ready within the range of this run.
[[nodiscard]] int fitting_runs(const RunLoad& load, int processors, std::uint64_t free_memory, int most);

inline constexpr int kMostAutomaticJobs = 8;

// The number to measure next if `jobs` runs in parallel do not keep their timing: half of `jobs`, rounded up, so that 3
// is followed by 2. `excess`: the largest TimingRange::excess() of these runs; 0 if the timing is not the reason. When
// runs share the processors, their times grow at most in proportion to their number, so with fewer runs they shrink at
// most in proportion. Therefore numbers for which even such times would exceed the range are left out.
[[nodiscard]] int fewer_runs(int jobs, double excess = 0);

struct SideBySide {
  int jobs = 1;
  int fit = 1;      // the number of runs that processors and memory allow; not measured yet if it is more than `jobs`
  int waiting = 1;  // the number of runs that memory allows, if all but `jobs` of them only wait
  TimingRange range;
  std::string words;              // in words: "4: at 4 in parallel ... ", or why there is only one
  std::vector<Run> control_runs;  // the control runs that were in the range; a search can use them
  int next_number = 1;            // number of the next run in `store`
  RunLoad alone;                  // the load of the run that was made alone
  ChangedOutside changed;         // paths that the nodes of that run changed
};

// Makes a control run alone, numbered options.number, and estimates from its load how many runs fit. Errors are those
// of run_in(). If the control run is not usable (the oracle finds the bug, or the run is inconclusive), this is no
// error and `fit` is 1, because the caller's own control run reports the problem.
[[nodiscard]] Result<SideBySide> measure_alone(RunStore& store, const config::Config& config,
                                               const schedule::Schedule& no_faults, RunOptions options);
// Makes control runs in parallel, first `fit` of them, then fewer (fewer_runs()), until they stay in the range, and
// sets `jobs`. `proven`: a number of runs that is known to stay in the range. Numbers below twice `proven` are not
// measured.
[[nodiscard]] Result<void> measure_in_parallel(SideBySide& made, RunStore& store, const config::Config& config,
                                               const schedule::Schedule& no_faults, RunOptions options, int proven = 1);

// The number of parallel runs for a command with --jobs auto. Measures it by runs in a separate store, and reports the
// result.
[[nodiscard]] Result<int> jobs_for(const config::Config& config, RunOptions options);

}  // namespace rose::replay
