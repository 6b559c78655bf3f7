// Makes one run: deploys the nodes, injects the faults, runs the workload, asks the oracle, and undoes everything.
// Callers decide which schedule is run and how often.
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

// The resources that a run used, and how long its parts took.
struct RunLoad {
  std::int64_t ready_ns = 0;     // from the start of the deployment until all nodes were ready
  std::int64_t workload_ns = 0;  // duration of the workload
  double cpu_seconds = 0;        // processor time of all processes of the run until the end of the workload
  std::uint64_t memory = 0;      // resident bytes of all processes of nodes when the workload ended
  double start_cpu_seconds = 0;  // of cpu_seconds: until all nodes were ready
};

struct Run;

struct RunOptions {
  int number = 1;
  std::filesystem::path run_dir;  // the folder must exist and be empty
  bool trace = true;              // trace every node; the tracer's window becomes the trace of the result
  bool allow_attached = false;    // allow faults on `attach` nodes
  bool stacks = false;            // record the stacks of threads that faults affect
  // The oracle is asked after the workload. Without a value here, the trace ends at this point, because the requests of
  // the oracle are not part of the system's behaviour. With a value, the trace continues until the oracle has answered,
  // and at least for this length of time.
  std::optional<std::int64_t> traced_answer_ns;
  observe::TracerOptions tracer;
  const ValueQueries* asked = nullptr;        // values to record in the nodes' programs
  jvm::CodeBook* code_book = nullptr;         // collects calls in watched Java methods
  const profile::Profile* profile = nullptr;  // functions that are frequent according to it are not watched
  Usual usual;                                // what runs without faults do, as far as this is known
  bool cut_short_is_result = false;           // a cancelled run is inconclusive and keeps its trace (trace -c)
  bool needs_work = false;                    // a workload that fails immediately makes the run inconclusive (trace -c)
  // A limit for the workload, far above what it took in runs that reproduced the bug. A workload that takes longer is
  // ended, and the run is inconclusive. 0: only the workload's own timeout applies.
  std::int64_t wait_at_most_ns = 0;
  // Calls `begin` once, when rose can assume that from then on the run only waits, usually for timeouts of its
  // workload: the workload has taken longer than `workload_ns`, all faults have been injected, and since the last fault
  // began or ended, the nodes have had `start_ns` to start again.
  struct Waiting {
    std::int64_t workload_ns = 0;
    std::int64_t start_ns = 0;
    std::function<void()> begin;  // empty: not wanted
  } waiting;
  std::optional<std::string> incident;  // a /bin/sh command that runs at the same time as the workload (trace -c)
  // Called when the tracer runs and the nodes are ready. The tracer exists until `tracer_gone` is called.
  std::function<void(observe::Tracer&, const std::filesystem::path& run_dir)> tracer_ready;
  std::function<void()> tracer_gone;
  // Called when the nodes are ready.
  std::function<void(const deploy::Deployment&)> nodes_ready;
  // Called by run_in() before the run starts.
  std::function<void(const std::filesystem::path& run_dir)> begin;
  // run_in() calls this once the run is over, before it is recorded. It may set Run::disturbed.
  std::function<void(Run& run, const schedule::Schedule& schedule)> check;
  // run_in() calls this after the run, while the run's directory exists. It adds what the run's logs show.
  std::function<void(const std::filesystem::path& run_dir, schedule::RunResult& result)> look;
};

struct Run {
  schedule::RunResult result;
  profile::RunCounts counts;  // with tracer.count_syscalls
  observe::SeenValues seen;   // with options.asked: visits and dropped values of each place; the values are in `result`
  std::vector<JavaAnswer> java;  // what JVMs reported on the queries
  bool completed = false;        // the oracle was run; if it was not, result.reason contains the reason
  deploy::CommandResult workload;
  std::optional<observe::Exchanged> exchanged;  // what workload and nodes exchanged; nothing: not known
  // time of the last exchange since the workload began; nothing: not known
  std::optional<std::int64_t> last_exchange_ns;
  RunLoad load;
  std::int64_t answer_ns = 0;  // how long the oracle, asked after the workload, took to answer
  // how parallel runs changed the timing of this run, so that it does not count; "" if they did not
  std::string disturbed;
  std::filesystem::path directory_made_in;  // the run's directory, even if it was not kept
  std::optional<deploy::CommandResult> incident;
  std::string oracle_line;  // the last line that the oracle printed at the end of the run; "" if there is none
  // where Python functions begin, by node and function
  std::map<std::pair<std::string, std::string>, std::pair<std::string, int>> python_places;
  std::string backend;  // how syscall faults were injected, and why in this way; "" if there were none
};

// Errors: the configuration or the schedule is invalid (input), the machine lacks a feature (environment), or the run
// was cancelled. Any other failure in a run (a node that does not become ready, a setup that fails, an oracle that
// cannot decide) gives an inconclusive result with the reason.
[[nodiscard]] Result<Run> run_once(const config::Config& config, const schedule::Schedule& schedule,
                                   const RunOptions& options);

// Fails with ErrorKind::input unless the configuration has a workload and an oracle, which every command with a verdict
// needs.
[[nodiscard]] Result<void> need_workload_and_oracle(const config::Config& config);

// What to trace in a deployment: the cgroups of the nodes, and the configured functions without those that are frequent
// according to `profile`, which may be null.
[[nodiscard]] std::vector<observe::Target> targets_of(const config::Config& config,
                                                      const deploy::Deployment& deployment,
                                                      const profile::Profile* profile);

// The options of the tracer in the table [trace] of rose.toml.
[[nodiscard]] observe::TracerOptions tracer_options(const config::Config& config);

}  // namespace rose::replay
