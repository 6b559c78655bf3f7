// One run: deploy, arm, drive, judge, undo. Rooms above decide which schedule and how often.
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

struct RunOptions {
  int number = 1;
  std::filesystem::path run_dir;  // exists, empty
  bool trace = true;              // a tracer watches every node; its window becomes the result's trace
  bool allow_attached = false;    // faults on `attach` nodes are allowed
  bool stacks = false;            // of the threads that faults hit
  observe::TracerOptions tracer;
  const Asked* asked = nullptr;               // what is read in the nodes' programs: the result's values
  jvm::CodeBook* code_book = nullptr;         // learns where the watched methods of JVMs call
  const profile::Profile* profile = nullptr;  // functions it calls frequent are not watched
  std::optional<profile::WorkloadUse> usual_work;  // what workloads do in fault-free runs, where that is known
  bool cut_short_is_result = false;           // a cancelled run is an inconclusive one, with its trace (trace -c)
  bool needs_work = false;                    // a workload that fails at once says nothing: inconclusive (trace -c)
  std::optional<std::string> incident;        // a /bin/sh command beside the workload (trace -c)
  // Called once the tracer watches and the nodes are ready; the tracer is valid until `tracer_gone` is called.
  std::function<void(observe::Tracer&, const std::filesystem::path& run_dir)> tracer_ready;
  std::function<void()> tracer_gone;
  // Called once the nodes are ready.
  std::function<void(const deploy::Deployment&)> nodes_ready;
  // Called by run_in() before the run begins.
  std::function<void(const std::filesystem::path& run_dir)> begin;
  // Called by run_in() once the run is over, while its directory is still there; fills in what its logs show.
  std::function<void(const std::filesystem::path& run_dir, schedule::RunResult& result)> look;
};

struct Run {
  schedule::RunResult result;
  profile::RunCounts counts;       // with tracer.count_syscalls
  observe::SeenValues seen;        // with options.asked: how often, and what was left out; the values are the result's
  std::vector<JavaAnswer> java;    // what JVMs said of what was asked
  bool completed = false;          // it came as far as the oracle; if not, result.reason says why
  deploy::CommandResult workload;
  std::optional<observe::Exchanged> exchanged;  // between the workload and the nodes; nothing: not known
  std::optional<deploy::CommandResult> incident;
  std::string backend;  // how syscall faults were injected and why so; "" without any
};

// Errors: a bad configuration or schedule (input), a machine that lacks something (environment) or
// cancellation. Everything else that goes wrong in a run (a node that does not get ready, a failing
// setup, an oracle that cannot tell) is an inconclusive result with its reason.
[[nodiscard]] Result<Run> run_once(const config::Config& config, const schedule::Schedule& schedule,
                                   const RunOptions& options);

// Error (input) unless the configuration has both, which every command that comes to a verdict needs.
[[nodiscard]] Result<void> need_workload_and_oracle(const config::Config& config);

// What to watch of a deployment's nodes: their cgroups, and the functions the configuration names,
// without those that `profile` (may be null) calls frequent.
[[nodiscard]] std::vector<observe::Target> targets_of(const config::Config& config,
                                                      const deploy::Deployment& deployment,
                                                      const profile::Profile* profile);

// The tracer options that rose.toml's [trace] asks for.
[[nodiscard]] observe::TracerOptions tracer_options(const config::Config& config);

}  // namespace rose::replay
