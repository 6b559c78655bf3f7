// Makes one run: deploy, inject, drive, judge, undo. Callers decide which schedule is run and how often.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "jvm/code_book.h"
#include "observe/tracer.h"
#include "profile/profile.h"
#include "replay/ask.h"
#include "replay/work.h"
#include "schedule/outcome.h"
#include "schedule/schedule.h"

namespace rose::replay {

// The resources that a run used, and its timing.
struct RunLoad {
  std::int64_t ready_ns = 0;     // from the start of the deployment until all nodes were ready
  std::int64_t workload_ns = 0;  // how long the workload took
  double cpu_seconds = 0;        // processor time of all processes of the run until the end of the workload
  std::uint64_t memory = 0;      // bytes resident in all processes of nodes when the workload ended
};

struct Run;

struct RunOptions {
  int number = 1;
  std::filesystem::path run_dir;  // must exist and be empty
  bool trace = true;              // trace every node; the window becomes the result's trace
  bool allow_attached = false;    // allow faults on `attach` nodes
  bool stacks = false;            // record stacks of threads affected by faults
  // If set, the trace also contains what happens until the oracle, which is asked after the workload, has answered, and
  // at least this long after it was asked. Otherwise the trace ends when the oracle is asked, because the oracle's
  // requests are no part of the system.
  std::optional<std::int64_t> traced_answer_ns;
  observe::TracerOptions tracer;
  const ValueQueries* asked = nullptr;        // values to record in the nodes' programs
  jvm::CodeBook* code_book = nullptr;         // collects calls in watched Java methods
  const profile::Profile* profile = nullptr;  // functions that it calls frequent are not watched
  Usual usual;                                // what fault-free runs do, as far as it is known
  bool cut_short_is_result = false;           // a cancelled run is inconclusive and keeps its trace (trace -c)
  bool needs_work = false;                    // a workload that fails immediately makes the run inconclusive (trace -c)
  std::optional<std::string> incident;        // a /bin/sh command that runs beside the workload (trace -c)
  // Called when the tracer runs and the nodes are ready. The tracer is valid until `tracer_gone` is called.
  std::function<void(observe::Tracer&, const std::filesystem::path& run_dir)> tracer_ready;
  std::function<void()> tracer_gone;
  // Called when the nodes are ready.
  std::function<void(const deploy::Deployment&)> nodes_ready;
  // Called by run_in() before the run starts.
  std::function<void(const std::filesystem::path& run_dir)> begin;
  // Called by run_in() once the run is over and before it is recorded; may set Run::disturbed.
  std::function<void(Run& run, const schedule::Schedule& schedule)> check;
  // Called by run_in() after the run, while its directory exists; adds what its logs show.
  std::function<void(const std::filesystem::path& run_dir, schedule::RunResult& result)> look;
};

struct Run {
  schedule::RunResult result;
  profile::RunCounts counts;     // with tracer.count_syscalls
  observe::SeenValues seen;      // with options.asked: counts and what was dropped; the values are in the result
  std::vector<JavaAnswer> java;  // reports of JVMs on the queries
  bool completed = false;        // the oracle was run; if not, result.reason has the reason
  deploy::CommandResult workload;
  std::optional<observe::Exchanged> exchanged;   // between the workload and the nodes; nothing: not known
  std::optional<std::int64_t> last_exchange_ns;  // since the workload began; nothing: not known
  RunLoad load;
  std::int64_t answer_ns = 0;  // how long the oracle took to answer after the workload
  std::string disturbed;       // if parallel runs changed its timing, so that it does not count: how; otherwise ""
  std::filesystem::path directory_made_in;  // its run directory, even if that was not kept
  std::optional<deploy::CommandResult> incident;
  std::string oracle_line;  // the last line that the oracle printed at the end of the run; "" if there is none
  std::string backend;      // how syscall faults were injected, and why in this way; "" without such faults
};

// Errors: invalid configuration or schedule (input), missing features of the machine (environment), or cancellation.
// Any other failure in a run (a node that does not become ready, a failing setup, an undecided oracle) gives an
// inconclusive result with its reason.
[[nodiscard]] Result<Run> run_once(const config::Config& config, const schedule::Schedule& schedule,
                                   const RunOptions& options);

// Returns ErrorKind::input unless the configuration has both, which every command with a verdict needs.
[[nodiscard]] Result<void> need_workload_and_oracle(const config::Config& config);

// What to trace in a deployment: the nodes' cgroups and the configured functions, without those that `profile` (may be
// null) calls frequent.
[[nodiscard]] std::vector<observe::Target> targets_of(const config::Config& config,
                                                      const deploy::Deployment& deployment,
                                                      const profile::Profile* profile);

// The tracer options in rose.toml's [trace].
[[nodiscard]] observe::TracerOptions tracer_options(const config::Config& config);

}  // namespace rose::replay
