// rose profile: makes fault-free runs of the test deployment and learns a profile from them.
#include "profile/profile.h"

#include <algorithm>
#include <csignal>
#include <deque>

#include "base/cancel.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "deploy/image_files.h"
#include "jvm/node.h"
#include "replay/repeat.h"
#include "report/dump/text.h"
#include "schedule/restart.h"

namespace rose::cli {
namespace {

struct ProfileOptions {
  std::string config = "rose.toml";
  std::string out = "profile.json";
  int runs = 1;
  std::optional<std::string> jobs;
  bool keep = false;
  bool restarts = false;
};

// For each node that is restarted when it ends (`restart` in its [[node]]), makes one run in which rose kills it.
Result<void> learn_restarts(profile::Profile& profile, const config::Config& config, replay::RunStore& store,
                            replay::RunOptions run_options, int first, std::int64_t workload_ns) {
  std::vector<schedule::Schedule> schedules;
  for (const config::Node& node : config.nodes) {
    if (node.restart && !node.attach) {
      schedules.push_back(schedule::planned_restart(config.name, node.name, SIGKILL, workload_ns));
    } else {
      log::warning("{} is not restarted by itself, so no run with its restart is made; set `restart` in its [[node]]",
                   node.name);
    }
  }
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    const std::string& node = schedules[i].faults[0].node;
    log::progress(fmt::format("profile: a restart of {} ({} of {})", node, i + 1, schedules.size()));
    run_options.number = first + static_cast<int>(i);
    std::vector<Result<replay::Run>> runs = replay::run_side_by_side(store, config, {&schedules[i]}, run_options);
    ROSE_TRY(const replay::Run made, std::move(runs.at(0)));
    if (!made.completed)
      return fail(
          ErrorKind::inconclusive,
          fmt::format("the run with a restart of {} did not end: {}", node, made.result.reason),
          made.result.directory.empty() ? "" : fmt::format("its logs are in {}", made.result.directory.string()));
    if (!profile::learn_restart(profile.restarts, made.result.trace, node))
      log::warning("{} was killed and did not start again until the run's end: nothing is learnt from its restart",
                   node);
    if (made.result.oracle == schedule::OracleAnswer::hit)
      log::warning("the bug occurred in the run in which {} was killed and started again", node);
  }
  return {};
}

Result<int> run_profile(const ProfileOptions& options, const Common& common) {
  ROSE_TRY(config::Config config, config::read_config(options.config));
  ROSE_TRY(const auto image_files, deploy::take_programs_out(config));
  if (!config.workload)
    return fail(ErrorKind::input, fmt::format("{}: there is no [workload]", options.config),
                "add [workload] with the command that drives the system");
  ROSE_CHECK(need_root("profile"));
  ROSE_CHECK(need_process_ids("profile"));
  ROSE_CHECK(check_output("-o", options.out));
  ROSE_CHECK(cancel::install());
  export_own_name();

  profile::Profile profile;
  profile.name = config.name;
  profile.infrequent_below = config.profile.infrequent_below;
  schedule::Schedule no_faults;
  no_faults.name = config.name;
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(std::nullopt, options.keep, "profile", config.file));
  replay::RunOptions run_options;
  run_options.tracer = replay::tracer_options(config);
  run_options.tracer.count_syscalls = true;
  run_options.tracer.infrequent_below = config.profile.infrequent_below;
  // Records shorter silences too, so that the profile is reliable well below the threshold.
  run_options.tracer.network_delay_ns = std::max<std::int64_t>(config.trace.network_delay_ns / 2, 100'000'000);
  int hits = 0;
  std::int64_t workload_ns = 0;
  ROSE_TRY(const int jobs, jobs_of(options.jobs ? *options.jobs : std::string("1"), config, false));
  std::deque<Result<replay::Run>> batch;
  for (int i = 1; i <= options.runs; ++i) {
    if (batch.empty()) {
      log::progress(fmt::format("profile: run {} of {}", i, options.runs));
      run_options.number = i;
      const int now = std::min(jobs, options.runs - i + 1);
      const std::vector<const schedule::Schedule*> schedules(static_cast<std::size_t>(now), &no_faults);
      for (Result<replay::Run>& run : replay::run_side_by_side(store, config, schedules, run_options))
        batch.push_back(std::move(run));
    }
    Result<replay::Run> next = std::move(batch.front());
    batch.pop_front();
    ROSE_TRY(const replay::Run made, std::move(next));
    if (!made.completed)
      return fail(
          ErrorKind::inconclusive, fmt::format("run {} did not end: {}", i, made.result.reason),
          made.result.directory.empty() ? "" : fmt::format("its logs are in {}", made.result.directory.string()));
    if (!made.workload.ok()) log::warning("run {}: the workload {}", i, made.workload.note);
    if (config.oracle && made.result.oracle == schedule::OracleAnswer::unknown)
      log::warning("run {}: {}", i, made.result.reason);
    workload_ns = std::max(workload_ns, made.load.workload_ns);
    hits += made.result.oracle == schedule::OracleAnswer::hit ? 1 : 0;
    profile::learn(profile, made.result.trace, made.counts);
    const auto bytes = [&](std::uint64_t observe::Exchanged::* which) {
      return made.exchanged ? std::optional(*made.exchanged.*which) : std::nullopt;
    };
    profile::learn_workload(profile, made.workload.failed(), bytes(&observe::Exchanged::sent),
                            bytes(&observe::Exchanged::received),
                            {.length_ns = made.load.workload_ns,
                             .last_exchange_ns = made.last_exchange_ns,
                             .hit = made.result.oracle == schedule::OracleAnswer::hit});
  }
  if (options.restarts) ROSE_CHECK(learn_restarts(profile, config, store, run_options, options.runs + 1, workload_ns));
  log::end_progress();
  if (hits > 0)
    log::warning("the bug occurred in {} of {} runs without faults: the oracle may be wrong", hits, options.runs);
  ROSE_CHECK(profile::write_profile(profile, options.out));
  for (const config::Node& node : config.nodes) {
    const jvm::Names methods = jvm::methods_of(node);
    if (jvm::runs_java(node) && methods.functions.empty() && methods.sources.empty())
      log::info(
          "{} runs a JVM, and none of its methods are named: set `functions` (\"org.x.*\") or `sources` "
          "(\"Server.java\") in its [[node]]; otherwise faults can only depend on rare system calls",
          node.name);
  }

  std::uint64_t calls = 0;
  for (const auto& [node, counts] : profile.syscalls)
    for (const auto& [name, count] : counts) calls += count;
  std::size_t rare = 0;
  for (const profile::FunctionRate& function : profile.functions) rare += function.infrequent ? 1 : 0;
  if (common.json)
    print(json_line({{"profile", options.out},
                     {"runs", profile.runs},
                     {"seconds", profile.seconds},
                     {"syscalls", calls},
                     {"failures", profile.failures.size()},
                     {"state_changes", profile.state_changes.size()},
                     {"functions", profile.functions.size()},
                     {"infrequent_functions", rare},
                     {"restarts", profile.restarts.nodes},
                     {"after_restarts", profile.restarts.failures.size()}}));
  else
    print(
        fmt::format("{}: {}, {:.1f} s, {}; {} of benign failures, {} of state changes, {} of {} functions infrequent\n",
                    printable(options.out), report::plural(static_cast<std::uint64_t>(profile.runs), "run"),
                    profile.seconds, report::plural(calls, "syscall"), report::plural(profile.failures.size(), "kind"),
                    report::plural(profile.state_changes.size(), "kind"), rare, profile.functions.size()));
  if (!common.json && !profile.restarts.nodes.empty())
    print(fmt::format("{}: {}, after which there were {} of failures\n", printable(options.out),
                      report::plural(profile.restarts.nodes.size(), "planned restart"),
                      report::plural(profile.restarts.failures.size(), "kind")));
  return 0;
}

}  // namespace

Command profile_command() {
  auto options = std::make_shared<ProfileOptions>();
  return {
      .name = "profile",
      .summary = "Learn what is normal from runs without faults",
      .description =
          "It starts the test deployment, runs the workload, and learns which failures of system calls are benign, "
          "which state-changing calls are rare, how often each system call is made, how long connections are silent, "
          "and how often the functions that the configuration names are entered. 'rose diagnose' ignores events of a "
          "dump that the profile also contains.\n\nWith several runs (--runs) it also learns what happens only in some "
          "of them. If the bug occurs in a run without faults, rose reports this, because the oracle may be wrong.",
      .examples = {"rose profile -c rose.toml", "rose profile -c rose.toml -o profile.json --runs 5 --restarts"},
      .options =
          {
              {.names = "-c,--config",
               .slot = &options->config,
               .value = "FILE",
               .help = "The deployment",
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write the profile",
               .completes = Completes::file},
              {.names = "--runs",
               .slot = &options->runs,
               .value = "N",
               .help = "How many runs to make",
               .range = {{1, 1000}}},
              {.names = "--jobs",
               .slot = &options->jobs,
               .value = "N|auto",
               .help =
                   "Number of parallel runs; auto: the largest number that does not change the timing of control runs. "
                   "Rates and silences are learnt from these runs, so too many parallel runs for this machine falsify "
                   "the profile",
               .otherwise = "1"},
              {.names = "--restarts",
               .slot = &options->restarts,
               .help = "For each node, also make a run in which this node is killed and starts again. Failures that "
                       "follow the restart in this run are not taken for faults if they also follow a restart in "
                       "the evidence"},
              {.names = "--keep", .slot = &options->keep, .help = "Keep the run directories"},
          },
      .run = [options](const Common& common) { return run_profile(*options, common); },
  };
}

}  // namespace rose::cli
