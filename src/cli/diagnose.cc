// rose diagnose: from the dump of a failure to the schedule that reproduces it.
#include <deque>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "diagnose/diagnose.h"
#include "inject/injector.h"
#include "replay/repeat.h"
#include "report/results.h"

namespace rose::cli {
namespace {

struct Options {
  std::vector<std::string> traces;
  std::string config = "rose.toml";
  std::string profile;
  std::string out = "schedule.toml";
  std::vector<std::string> map;
  std::string report;
  bool plan = false;
  std::optional<int> jobs;
  bool resume = false;
  bool keep = false;
  bool allow_attached = false;
};

// Real runs in the test deployment; with --resume, the recorded ones first. The search is
// deterministic, so it asks for the same schedules in the same order.
class ClusterRunner final : public diagnose::Runner {
 public:
  ClusterRunner(const config::Config& config, const std::optional<profile::Profile>& profile, replay::RunStore& store,
                bool allow_attached, std::vector<replay::RunStore::Recorded> recorded)
      : config_(config), store_(store), recorded_(recorded.begin(), recorded.end()) {
    options_.tracer = replay::tracer_options(config);
    options_.allow_attached = allow_attached;
    if (profile) options_.profile = &*profile;
  }

  Result<schedule::RunResult> run(const schedule::Schedule& schedule) override {
    ROSE_TRY(std::vector<schedule::RunResult> results, run_many(schedule, 1));
    return std::move(results.front());
  }

  Result<std::vector<schedule::RunResult>> run_many(const schedule::Schedule& schedule, int count) override {
    ROSE_CHECK(cancel::check());
    std::vector<schedule::RunResult> results;
    for (; count > 0 && !recorded_.empty(); --count) {
      ROSE_TRY(results.emplace_back(), next_recorded(schedule));
      ++runs_;
    }
    if (count == 0) return results;
    options_.number = runs_ + 1;
    runs_ += count;
    ROSE_TRY(std::vector<replay::Run> made, replay::run_side_by_side(store_, config_, schedule, options_, count));
    for (replay::Run& run : made) {
      log::debug("run {}: {} ({})\n{}", run.result.number, schedule::verdict_name(run.result.verdict), run.result.reason,
                 report::fault_table(schedule, run.result));
      results.push_back(std::move(run.result));
    }
    return results;
  }

 private:
  Result<schedule::RunResult> next_recorded(const schedule::Schedule& schedule) {
    replay::RunStore::Recorded recorded = std::move(recorded_.front());
    recorded_.pop_front();
    if (recorded.fingerprint != schedule::fingerprint(schedule))
      return fail(ErrorKind::input,
                  fmt::format("the record's run {} is of another schedule than the search asks for: the dump, profile or "
                              "configuration changed since", recorded.result.number),
                  "diagnose without --resume to start over");
    return std::move(recorded.result);
  }

  const config::Config& config_;
  replay::RunStore& store_;
  replay::RunOptions options_;
  int runs_ = 0;
  std::deque<replay::RunStore::Recorded> recorded_;
};

Result<std::map<std::string, std::string>> parse_map(const std::vector<std::string>& entries) {
  std::map<std::string, std::string> map;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size())
      return fail(ErrorKind::usage, fmt::format("--map: '{}' is not HOST=NODE", entry),
                  "name the host as in the dump and the node as in rose.toml, such as --map db-7=n1");
    if (!map.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second)
      return fail(ErrorKind::usage, fmt::format("--map: host '{}' is mapped twice", entry.substr(0, equals)));
  }
  return map;
}

std::string progress_line(const diagnose::Progress& p, double seconds) {
  return fmt::format("diagnose: level {}, schedule {}, run {} ({:.0f} s, at most {} runs left, best rate {:.0f} %): {}", p.level,
                     p.schedules, p.runs, seconds, p.runs_left, p.best_rate * 100, p.doing);
}

int exit_code_of(const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.target_reached) return 0;
  return diagnosis.verdict == schedule::Verdict::inconclusive ? 4 : 1;
}

Result<int> run(const Options& options, const Common& common) {
  ROSE_TRY(config::Config config, config::read_config(options.config));
  if (options.jobs) config.diagnose.jobs = *options.jobs;
  diagnose::Inputs inputs;
  inputs.config = &config;
  ROSE_TRY(inputs.host_to_node, parse_map(options.map));
  ROSE_TRY(inputs.profile, load_profile(options.profile));
  for (const std::string& file : options.traces) {
    ROSE_TRY(inputs.traces.emplace_back(), load_trace(file));
  }
  if (!inputs.profile)
    log::warning("no --profile: failures that are normal for this system cannot be told from the others");

  if (options.plan) {
    ROSE_TRY(const diagnose::Plan plan, diagnose::make_plan(inputs));
    print(common.json ? report::plan_json(plan) : report::plan_text(plan));
    return 0;
  }

  ROSE_CHECK(replay::need_workload_and_oracle(config));
  ROSE_CHECK(replay::check_jobs(config, config.diagnose.jobs));
  if (options.resume && options.report.empty())
    return fail(ErrorKind::usage, "--resume continues from a record, and there is none without --report DIR");
  ROSE_CHECK(need_root("diagnose"));
  ROSE_CHECK(check_output("-o", options.out));
  ROSE_CHECK(cancel::install());
  export_own_name();

  std::optional<std::filesystem::path> folder;
  if (!options.report.empty()) folder = options.report;
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(folder, options.keep));
  std::vector<replay::RunStore::Recorded> recorded;
  if (options.resume) {
    ROSE_TRY(recorded, store.recorded());
    log::info("resuming after {} recorded runs", recorded.size());
  } else {
    ROSE_CHECK(store.start_over());
  }
  const std::int64_t began = monotonic_ns();
  const auto seconds = [&] { return static_cast<double>(monotonic_ns() - began) / 1e9; };
  ClusterRunner runner(config, inputs.profile, store, options.allow_attached, std::move(recorded));
  ROSE_TRY(const diagnose::Diagnosis diagnosis, diagnose::diagnose(inputs, runner, [&](const diagnose::Progress& p) {
             log::progress(progress_line(p, seconds()));
           }));
  log::end_progress();

  std::string schedule_path;
  if (diagnosis.found) {
    schedule_path = options.out;
    const auto [low, high] = diagnosis.tally.interval();
    const std::string comment =
        fmt::format("Found by rose diagnose at level {}: {} of {} runs reproduced (95 % interval {:.2f}-{:.2f}).\n{}",
                    diagnosis.level, diagnosis.tally.reproduced, diagnosis.tally.conclusive(), low, high, diagnosis.words);
    ROSE_CHECK(write_file(schedule_path, schedule::to_toml(*diagnosis.found, comment), 0644));
  }
  const std::string json = report::diagnosis_json(diagnosis, schedule_path, seconds());
  const std::string text = report::diagnosis_text(diagnosis, schedule_path, seconds());
  if (folder) {
    ROSE_CHECK(write_file(*folder / "diagnosis.json", json));
    ROSE_CHECK(write_file(*folder / "diagnosis.txt", text));
  }
  print(common.json ? json : text);
  return exit_code_of(diagnosis);
}

}  // namespace

void add_diagnose(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, "diagnose", "Find the fault schedule that reproduces the failure in a dump",
                                  "  rose diagnose --trace dump.bin -c rose.toml --profile profile.json\n"
                                  "  rose diagnose --trace a.bin b.bin --map db-7=n1 db-8=n2 -c rose.toml --plan");
  command->add_option("--trace", options->traces, "Dumps of the failure, one a host")->required()->type_name("FILE");
  command->add_option("-c,--config", options->config, "The test deployment, its workload and oracle")->capture_default_str();
  command->add_option("--profile", options->profile, "What is normal, from 'rose profile'");
  command->add_option("-o,--output", options->out, "Where the schedule is written")->capture_default_str();
  command->add_option("--map", options->map, "A host of the dump is this node of the deployment")->type_name("HOST=NODE");
  command->add_option("--report", options->report, "Write the record of all runs, their traces and the result to this folder")->type_name("DIR");
  command->add_flag("--plan", options->plan, "Print what would be tried, and run nothing; needs no privilege");
  command->add_option("--jobs", options->jobs, "Runs side by side")->check(CLI::Range(1, 64));
  command->add_flag("--resume", options->resume, "Go on from the record in --report DIR");
  command->add_flag("--keep", options->keep, "Keep all run directories");
  command->add_flag("--allow-attached", options->allow_attached, "Allow faults on nodes that rose did not start; they may be production");
  command->callback([options, &action] { action = [options](const Common& c) { return run(*options, c); }; });
}

}  // namespace rose::cli
