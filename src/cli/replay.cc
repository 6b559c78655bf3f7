#include <map>

// rose replay: runs a schedule again and reports its replay rate.
#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/page.h"
#include "inject/injector.h"
#include "replay/repeat.h"
#include "report/results.h"

namespace rose::cli {
namespace {

struct ReplayOptions {
  std::string schedule;
  std::string config = "rose.toml";
  std::optional<int> runs;
  std::optional<int> jobs;
  std::string expect = "bug";
  std::string junit;
  std::string report;
  bool keep = false;
  bool allow_attached = false;
};

// Fewer than half of the runs conclusive is no verdict; else the rate decides.
void conclude(report::ReplayReport& report) {
  const schedule::Tally& tally = report.tally;
  std::string first_reason;
  for (const schedule::RunResult& run : report.runs)
    if (run.verdict == schedule::Verdict::inconclusive && first_reason.empty()) first_reason = run.reason;
  if (report.expect_fixed && tally.reproduced > 0) {
    report.verdict = schedule::Verdict::reproduced;
    report.reason = fmt::format("the bug still shows: in {} of {} conclusive runs", tally.reproduced, tally.conclusive());
  } else if (report.expect_fixed && tally.inconclusive > 0) {
    report.verdict = schedule::Verdict::inconclusive;
    report.reason = fmt::format("{} of {} runs were inconclusive: {}", tally.inconclusive, tally.runs(), first_reason);
  } else if (tally.conclusive() == 0 || 2 * tally.conclusive() < tally.runs()) {
    report.verdict = schedule::Verdict::inconclusive;
    report.reason = fmt::format("{} of {} runs were inconclusive: {}", tally.inconclusive, tally.runs(), first_reason);
  } else if (report.expect_fixed) {
    report.verdict = schedule::Verdict::not_reproduced;
    report.reason = "the bug did not show in any run, and every planned fault fired";
  } else {
    const bool reached = tally.rate() >= report.target_rate;
    report.verdict = reached ? schedule::Verdict::reproduced : schedule::Verdict::not_reproduced;
    report.reason = fmt::format("the rate {:.2f} is {} the wanted {:.2f}", tally.rate(), reached ? "at or above" : "below",
                                report.target_rate);
  }
}

int replay_exit_code(const report::ReplayReport& report) {
  if (report.verdict == schedule::Verdict::inconclusive) return 4;
  return report.passed() ? 0 : 1;
}

// The first run of each kind: what is different in the ones that go otherwise is then seen side by side.
std::vector<schedule::RunResult> telling_runs(const report::ReplayReport& report, const replay::RunStore& store) {
  std::vector<schedule::RunResult> shown;
  for (const auto verdict : {schedule::Verdict::reproduced, schedule::Verdict::not_reproduced, schedule::Verdict::inconclusive}) {
    const auto run = std::find_if(report.runs.begin(), report.runs.end(), [&](const auto& r) { return r.verdict == verdict; });
    if (run == report.runs.end() || shown.size() == 2) continue;
    shown.push_back(*run);
    shown.back().trace = store.recorded_trace(run->number);
  }
  return shown;
}

std::string replay_page(const report::ReplayReport& report, const replay::RunStore& store, const config::Config& config) {
  report::PageContext context = page_context(config.node_names());
  context.environment.emplace_back("Schedule", report.schedule_path);
  add_deployment(context, config, report.config_path);
  if (!report.backend.empty()) context.environment.emplace_back("Syscall faults by", report.backend);
  context.environment.emplace_back("Record of the runs", store.folder().parent_path().string());
  return report::replay_html(report, telling_runs(report, store), context);
}

Result<int> run_replay(const ReplayOptions& options, const Common& common) {
  ROSE_TRY(const config::Config config, config::read_config(options.config));
  ROSE_TRY(const schedule::Schedule schedule, schedule::read_schedule(options.schedule));
  ROSE_CHECK(schedule::check_nodes(schedule, config.node_names(), options.schedule));
  ROSE_CHECK(replay::need_workload_and_oracle(config));
  const int jobs = options.jobs.value_or(config.diagnose.jobs);
  ROSE_CHECK(replay::check_jobs(config, jobs));
  ROSE_CHECK(need_root("replay"));
  ROSE_CHECK(need_process_ids("replay"));
  if (!options.junit.empty()) ROSE_CHECK(check_output("--junit", options.junit));
  ROSE_CHECK(inject::check(schedule, config, options.allow_attached));
  ROSE_CHECK(cancel::install());
  export_own_name();

  std::optional<std::filesystem::path> folder;
  if (!options.report.empty()) folder = options.report;
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(folder, options.keep));
  ROSE_CHECK(store.start_over(config));
  replay::RunOptions run_options;
  run_options.tracer = replay::tracer_options(config);
  run_options.trace = store.has_report();  // the record wants traces; a bare replay is quicker without
  run_options.allow_attached = options.allow_attached;
  const int runs = options.runs.value_or(config.diagnose.confirm_runs);

  report::ReplayReport report;
  report.name = config.name;
  report.schedule = schedule;
  report.schedule_path = options.schedule;
  report.config_path = options.config;
  report.began_ns = wall_ns();
  report.target_rate = config.diagnose.target_rate;
  report.expect_fixed = options.expect == "fixed";
  const auto each = [&](const replay::Run& made, const schedule::Tally& tally) {
    log::progress(fmt::format("replay: run {} of {}: {} ({}); {} reproduced, {} not, {} inconclusive", made.result.number,
                              runs, schedule::verdict_name(made.result.verdict), made.result.reason, tally.reproduced,
                              tally.not_reproduced, tally.inconclusive));
    if (common.verbose) log::debug("faults:\n{}", report::fault_table(schedule, made.result));
  };
  ROSE_TRY(replay::Repeated repeated, replay::repeat(config, schedule, runs, jobs, run_options, store, each));
  log::end_progress();
  report.tally = repeated.tally;
  report.seconds = repeated.seconds;
  std::map<std::string, int> failed_workloads;
  for (replay::Run& made : repeated.runs) {
    if (!made.backend.empty()) report.backend = made.backend;
    report.workloads.push_back(made.workload.note);
    if (made.completed && !made.workload.ok()) ++failed_workloads[made.workload.note];
    report.runs.push_back(std::move(made.result));
  }
  for (const auto& [note, times] : failed_workloads) log::info("the workload {} in {} of {} runs", note, times, report.runs.size());
  conclude(report);
  if (!options.junit.empty()) ROSE_CHECK(write_file(options.junit, report::replay_junit(report)));
  if (folder) {
    ROSE_CHECK(write_file(*folder / "replay.json", report::replay_json(report)));
    ROSE_CHECK(write_file(*folder / "replay.txt", report::replay_text(report)));
    ROSE_CHECK(write_file(*folder / "report.html", replay_page(report, store, config)));
    log::info("report: {}", (*folder / "report.html").string());
  }
  print(common.json ? report::replay_json(report) : report::replay_text(report));
  return replay_exit_code(report);
}

}  // namespace

Command replay_command() {
  auto options = std::make_shared<ReplayOptions>();
  return {
      .name = "replay",
      .summary = "Run a schedule again and report its replay rate",
      .description =
          "It runs the schedule against the test deployment again and again, and says for each fault how often it was requested and fired, "
          "and how often the bug showed in the runs that could tell. Runs end early when the rest can no longer change the outcome.\n\n"
          "With --expect bug it exits with 0 when the rate reaches target_rate. With --expect fixed, for the patched build, it exits with 0 "
          "when the bug did not show in any run and every planned fault fired; it states the upper bound of the rate that remains.",
      .examples = {"rose replay schedule.toml -c rose.toml --runs 10",
                   "rose replay schedule.toml -c rose.toml --expect fixed --junit replay.xml"},
      .options =
          {
              {.names = "schedule", .slot = &options->schedule, .value = "SCHEDULE", .help = "The schedule", .required = true,
               .completes = Completes::file},
              {.names = "-c,--config", .slot = &options->config, .value = "FILE", .help = "The deployment", .completes = Completes::file},
              {.names = "--runs", .slot = &options->runs, .value = "N", .help = "How many runs",
               .otherwise = "confirm_runs of the configuration", .range = {{1, 100000}}},
              {.names = "--jobs", .slot = &options->jobs, .value = "N", .help = "Runs side by side",
               .otherwise = "jobs of the configuration", .range = {{1, 64}}},
              {.names = "--expect", .slot = &options->expect, .value = "WHAT",
               .help = "bug: exit 0 when it reproduces; fixed: exit 0 when it never shows although every fault fired",
               .choices = {"bug", "fixed"}},
              {.names = "--junit", .slot = &options->junit, .value = "FILE",
               .help = "Write a JUnit report: one test case for the schedule, one a run", .completes = Completes::file},
              {.names = "--report", .slot = &options->report, .value = "DIR",
               .help = "Write the record of all runs, their traces and results, and report.html to this folder",
               .completes = Completes::folder},
              {.names = "--keep", .slot = &options->keep, .help = "Keep all run directories"},
              {.names = "--allow-attached", .slot = &options->allow_attached,
               .help = "Allow faults on nodes that rose did not start; they may be production"},
          },
      .files = {{"DIR/report.html", "Of --report: the rate, and the time line of a run of each verdict. One file that fetches nothing."}},
      .run = [options](const Common& common) { return run_replay(*options, common); },
  };
}

}  // namespace rose::cli
