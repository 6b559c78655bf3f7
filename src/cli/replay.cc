// rose replay: runs schedules again and reports their replay rates.
#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/page.h"
#include "cli/replay_recording.h"
#include "deploy/image_files.h"
#include "inject/injector.h"
#include "replay/alone.h"
#include "replay/cases.h"
#include "replay/repeat.h"
#include "report/suite.h"

namespace rose::cli {
namespace {

struct ReplayOptions {
  std::vector<std::string> places;
  std::vector<std::string> filter, exclude;
  std::string config = "rose.toml";
  std::string profile;
  std::optional<int> runs;
  std::optional<std::string> jobs;
  std::string expect = "bug";
  std::string quarantine;
  std::string junit, tap;
  std::string report;
  bool keep = false;
  bool allow_attached = false;
  bool stacks = false, no_stacks = false;
  AloneOptions alone;
};

// The first run of each outcome, so that the differences can be seen side by side.
std::vector<schedule::RunResult> run_of_each_outcome(const report::ReplayReport& report,
                                                     const replay::RunStore& store) {
  std::vector<schedule::RunResult> shown;
  for (const auto verdict :
       {schedule::Verdict::reproduced, schedule::Verdict::not_reproduced, schedule::Verdict::inconclusive}) {
    const auto run =
        std::find_if(report.runs.begin(), report.runs.end(), [&](const auto& r) { return r.verdict == verdict; });
    if (run == report.runs.end() || shown.size() == 2) continue;
    shown.push_back(*run);
    shown.back().trace = store.recorded_trace(run->number);
  }
  return shown;
}

std::string replay_page(const report::ReplayReport& report, const replay::RunStore& store,
                        const config::Config& config) {
  report::PageContext context = page_context(config.node_names());
  context.environment.emplace_back("Schedule", report.schedule_path);
  add_deployment(context, config, report.config_path);
  if (!report.backend.empty()) context.environment.emplace_back("Syscall faults by", report.backend);
  context.environment.emplace_back("Record of the runs", store.folder().parent_path().string());
  return report::replay_html(report, run_of_each_outcome(report, store), context);
}

// Parses the lower limit of --quarantine, such as "0.5"; nothing if the option is absent.
Result<std::optional<double>> quarantine_option(const ReplayOptions& options) {
  const std::string& text = options.quarantine;
  if (text.empty()) return std::nullopt;
  if (options.expect == "fixed")
    return fail(ErrorKind::usage, "--quarantine and --expect fixed exclude each other",
                "a bug that occurs, however rarely, is not fixed");
  double rate = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || !(rate > 0 && rate <= 1))
    return fail(ErrorKind::usage, fmt::format("--quarantine '{}' is not a rate", printable(text)),
                "above 0, up to 1, such as 0.5");
  return rate;
}

// A test that has been read and checked before anything starts.
struct Test {
  replay::Case what;
  config::Config config;
  schedule::Schedule schedule;
  std::unique_ptr<deploy::ImageFiles> image_files;
  replay::Usual usual;
};

Result<Test> read_test(const replay::Case& what, const ReplayOptions& options) {
  Test test{what, {}, {}, {}, {}};
  ROSE_TRY(test.config, config::read_config(what.config));
  ROSE_TRY(test.image_files, deploy::take_programs_out(test.config));
  ROSE_TRY(test.schedule, schedule::read_schedule(what.schedule));
  ROSE_CHECK(schedule::check_nodes(test.schedule, test.config.node_names(), what.schedule.string()));
  ROSE_CHECK(replay::need_workload_and_oracle(test.config));
  ROSE_CHECK(inject::check(test.schedule, test.config, options.allow_attached));
  ROSE_TRY(test.usual, replay::usual_of(test.config, options.profile));
  return test;
}

struct Replaying {
  const ReplayOptions& options;
  const Common& common;
  std::optional<double> quarantine;
  bool several = false;  // if there are several tests, progress lines name the test
  int jobs = 1;          // with several tests: the number of schedules that run in parallel
};

report::ReplayReport blank_report(const Test& test, const Replaying& how) {
  report::ReplayReport report;
  report.name = test.config.name;
  report.schedule = test.schedule;
  report.schedule_path = test.what.schedule.string();
  report.config_path = test.what.config.string();
  report.began_ns = wall_ns();
  report.target_rate = test.config.diagnose.target_rate;
  report.expect_fixed = how.options.expect == "fixed";
  report.quarantine = how.quarantine;
  report.usual_work = test.usual.work;
  if (!test.usual.work)
    report.unchecked.push_back(fmt::format(
        "whether the workload exchanges data with the nodes as it does without faults was not checked: {}; "
        "'rose profile -c {}' makes one",
        how.options.profile.empty() ? fmt::format("no profile in {} records it", test.config.directory.string())
                                    : fmt::format("{} does not record it", how.options.profile),
        report.config_path));
  return report;
}

// Makes the runs, up to `jobs` in parallel, and writes the record to `folder`.
Result<report::ReplayReport> replay_test(const Test& test, const Replaying& how, int jobs,
                                         const std::optional<std::filesystem::path>& folder) {
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(folder, how.options.keep, "replay", test.config.file));
  ROSE_CHECK(store.start_over(test.config));
  replay::RunOptions run_options;
  run_options.tracer = replay::tracer_options(test.config);
  run_options.trace = store.has_report();  // reports need traces; without a report, runs are faster without them
  run_options.allow_attached = how.options.allow_attached;
  run_options.stacks = !how.options.no_stacks;
  run_options.usual = test.usual;
  const int runs = how.options.runs.value_or(test.config.diagnose.confirm_runs);

  report::ReplayReport report = blank_report(test, how);
  const std::string who = how.several ? "replay: " + test.what.name : "replay";
  const auto each = [&](const replay::Run& made, const schedule::Tally& tally) {
    log::progress(fmt::format("{}: run {} of {}: {} ({}); {} reproduced, {} not, {} inconclusive", who,
                              made.result.number, runs, schedule::verdict_name(made.result.verdict), made.result.reason,
                              tally.reproduced, tally.not_reproduced, tally.inconclusive));
    if (how.common.verbose) log::debug("faults:\n{}", report::fault_table(test.schedule, made.result));
  };
  ROSE_TRY(replay::Repeated repeated, replay::repeat(test.config, test.schedule, runs, jobs, run_options, store, each));
  log::end_progress();
  report.tally = repeated.tally;
  report.seconds = repeated.seconds;
  std::map<std::string, int> failed_workloads;
  for (replay::Run& made : repeated.runs) {
    made.result.recordings = replay::recordings_of(test.config, made.result.directory);
    if (!made.backend.empty()) report.backend = made.backend;
    report.workloads.push_back(made.workload.note);
    if (made.completed && !made.workload.ok()) ++failed_workloads[made.workload.note];
    if (made.workload.failed()) ++report.failed_workloads;
    if (made.exchanged && replay::exchanged_data(*made.exchanged, test.usual.work)) report.work_seen = true;
    report.runs.push_back(std::move(made.result));
    // A later run may have replaced the directory of this run.
    std::error_code gone;
    if (!std::filesystem::exists(report.runs.back().directory, gone)) report.runs.back().directory.clear();
  }
  if (const schedule::RunResult* recorded = report.recorded_run()) {
    for (const auto& path : recorded->recordings)
      if (std::string command = replay::alone_command(test.config, recorded->directory, path); !command.empty())
        report.alone.push_back(std::move(command));
  }
  for (const auto& [note, times] : failed_workloads)
    log::info("{}the workload {} in {} of {} runs", how.several ? test.what.name + ": " : "", note, times,
              report.runs.size());
  report::conclude(report);
  if (folder) {
    ROSE_CHECK(write_file(*folder / "replay.json", report::replay_json(report)));
    ROSE_CHECK(write_file(*folder / "replay.txt", report::replay_text(report)));
    ROSE_CHECK(write_file(*folder / "report.html", replay_page(report, store, test.config)));
    log::info("report: {}", (*folder / "report.html").string());
  }
  return report;
}

Result<int> replay_one(const Test& test, const Replaying& how) {
  const ReplayOptions& options = how.options;
  ROSE_TRY(const int jobs, jobs_of(options.jobs, test.config, options.allow_attached));
  std::optional<std::filesystem::path> folder;
  if (!options.report.empty()) folder = options.report;
  ROSE_TRY(report::ReplayReport report, replay_test(test, how, jobs, folder));
  if (!options.junit.empty()) ROSE_CHECK(write_file(options.junit, report::replay_junit(report)));
  if (!options.tap.empty()) ROSE_CHECK(write_file(options.tap, report::replay_tap(report)));
  print(how.common.json ? report::replay_json(report) : report::replay_text(report));
  return report::SuiteEntry{test.what.name, std::move(report), std::nullopt}.exit_code();
}

// Runs tests in parallel, except those whose runs share the host's network. Results are in the order of the tests.
std::vector<report::SuiteEntry> replay_all(const std::vector<Test>& tests, const Replaying& how) {
  const int jobs = how.jobs;
  const int workers = std::min(jobs, static_cast<int>(tests.size()));
  std::vector<report::SuiteEntry> entries(tests.size());
  std::atomic<std::size_t> next = 0;
  std::shared_mutex host;
  std::mutex output_mutex;
  int done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tests.size(); i = next++) {
      const Test& test = tests[i];
      const bool apart = test.config.deployment.network == config::Network::netns;
      std::shared_lock beside(host, std::defer_lock);
      std::unique_lock alone(host, std::defer_lock);
      if (apart) beside.lock();
      else alone.lock();
      if (cancel::requested()) return;
      std::optional<std::filesystem::path> folder;
      if (!how.options.report.empty()) folder = std::filesystem::path(how.options.report) / test.what.name;
      report::SuiteEntry& entry = entries[i];
      entry.name = test.what.name;
      auto made = replay_test(test, how, apart ? std::max(1, jobs / workers) : 1, folder);
      if (made) {
        entry.report = *std::move(made);
      } else {
        entry.report = blank_report(test, how);
        entry.error = std::move(made).error();
      }
      const std::lock_guard lock(output_mutex);
      log::info("{} of {}: {}: {}", ++done, tests.size(), entry.name,
                entry.error ? entry.error->message : entry.report.reason);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < workers; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return entries;
}

Result<int> replay_several(const std::vector<Test>& tests, const Replaying& how) {
  const ReplayOptions& options = how.options;
  const std::int64_t began = monotonic_ns();
  report::SuiteReport report;
  report.expect_fixed = options.expect == "fixed";
  report.entries = replay_all(tests, how);
  report.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  ROSE_CHECK(cancel::check());
  if (!options.junit.empty()) ROSE_CHECK(write_file(options.junit, report::suite_junit(report)));
  if (!options.tap.empty()) ROSE_CHECK(write_file(options.tap, report::suite_tap(report)));
  if (!options.report.empty()) {
    const std::filesystem::path folder = options.report;
    ROSE_CHECK(write_file(folder / "replay.json", report::suite_json(report)));
    ROSE_CHECK(write_file(folder / "replay.txt", report::suite_text(report)));
  }
  print(how.common.json ? report::suite_json(report) : report::suite_text(report));
  return report.exit_code();
}

// The command has two modes: schedules, and one recording (--recording). Options of one mode are refused in the other.
Result<void> check_use(const ReplayOptions& options) {
  const auto no = [](std::string_view what, std::string_view other) {
    return fail(ErrorKind::usage, fmt::format("{} and {} exclude each other", what, other), "see 'rose replay --help'");
  };
  if (options.alone.recording.empty()) {
    if (!options.alone.node.empty())
      return fail(ErrorKind::usage, "--node is for --recording",
                  "a schedule itself names the nodes that its faults affect");
    if (!options.alone.patience.empty())
      return fail(ErrorKind::usage, "--patience is for --recording", "see 'rose replay --help'");
    if (options.places.empty())
      return fail(ErrorKind::usage, "what is to be replayed?",
                  "a schedule, a folder of schedules, or --recording FILE -- CMD");
    return {};
  }
  const std::pair<std::string_view, bool> given[] = {
      {"--config", options.config != "rose.toml"}, {"--profile", !options.profile.empty()},
      {"--filter", !options.filter.empty()},       {"--exclude", !options.exclude.empty()},
      {"--runs", options.runs.has_value()},        {"--jobs", options.jobs.has_value()},
      {"--expect", options.expect != "bug"},       {"--quarantine", !options.quarantine.empty()},
      {"--junit", !options.junit.empty()},         {"--tap", !options.tap.empty()},
      {"--report", !options.report.empty()},       {"--stacks", options.stacks},
      {"--no-stacks", options.no_stacks},          {"--keep", options.keep},
      {"--allow-attached", options.allow_attached}};
  for (const auto& [name, is] : given)
    if (is) return no(name, "--recording");
  return {};
}

Result<int> run_replay(const ReplayOptions& options, const Common& common) {
  ROSE_CHECK(check_use(options));
  if (!options.alone.recording.empty()) {
    AloneOptions alone = options.alone;
    alone.command = options.places;
    return replay_recording(std::move(alone), common);
  }
  if (options.stacks && options.no_stacks)
    return fail(ErrorKind::usage, "--stacks and --no-stacks exclude each other",
                "stacks are recorded unless --no-stacks is given");
  const replay::CaseQuery query{options.places, options.config, options.filter, options.exclude};
  ROSE_TRY(const std::optional<double> quarantine, quarantine_option(options));
  ROSE_TRY(const std::vector<replay::Case> cases, replay::find_cases(query));
  std::vector<Test> tests;
  for (const replay::Case& each : cases) {
    ROSE_TRY(Test test, read_test(each, options));
    tests.push_back(std::move(test));
  }
  ROSE_CHECK(need_root("replay"));
  ROSE_CHECK(need_process_ids("replay"));
  if (!options.junit.empty()) ROSE_CHECK(check_output("--junit", options.junit));
  if (!options.tap.empty()) ROSE_CHECK(check_output("--tap", options.tap));
  if (!options.junit.empty() && !options.tap.empty() && same_output(options.junit, options.tap))
    return fail(ErrorKind::usage, fmt::format("--junit and --tap both name {}", options.tap), "two different files");
  ROSE_CHECK(cancel::install());
  export_own_name();
  Replaying how{options, common, quarantine, !query.is_single()};
  if (how.several && options.jobs) {
    // Schedules of different deployments run in parallel, so the most demanding deployment limits the number.
    std::optional<int> jobs;
    std::set<std::filesystem::path> measured;
    for (const Test& test : tests) {
      if (test.config.deployment.network != config::Network::netns || !measured.insert(test.what.config).second)
        continue;
      ROSE_TRY(const int fit, jobs_of(options.jobs, test.config, options.allow_attached));
      jobs = std::min(fit, jobs.value_or(fit));
    }
    how.jobs = jobs.value_or(1);
  }
  return how.several ? replay_several(tests, how) : replay_one(tests.front(), how);
}

}  // namespace

Command replay_command() {
  auto options = std::make_shared<ReplayOptions>();
  return {
      .name = "replay",
      .summary = "Run schedules again and report their replay rates, or replay one node alone from its recording",
      .synopsis = {"SCHEDULE|FOLDER... [OPTION...]",
                   "--recording FILE [--node NODE] [--patience DURATION] -- CMD [ARG...]"},
      .description =
          "It runs the schedule in the test deployment repeatedly. For each fault it reports in how many runs the "
          "fault was requested, fired, and was effective. A fault is effective when it changes something: packets are "
          "dropped, results of calls are changed, a limit is reached, processes end. It also reports how often the "
          "bug was reproduced in conclusive runs.\n\nWith --expect bug it exits with 0 when the rate reaches "
          "target_rate. With --expect fixed, for the patched build, it exits with 0 when no run reproduced the bug, "
          "every planned fault that is not optional was effective, and at least one fault was effective in some run; "
          "it prints the upper bound of the remaining rate. If a fault was not effective, or the workload did no "
          "work, the result is inconclusive. What the workload does without faults is read from the "
          "profile.\n\nSeveral schedules are a test suite. A folder means all schedules in it and below it. If -c "
          "names a file without a slash, each schedule is replayed with the configuration of that name beside it, or "
          "with the nearest one in a folder above it. All schedules are read and checked before the first one runs. "
          "The exit code is 0 when all passed, 1 when one failed, 4 when none failed but one was "
          "inconclusive.\n\nWith --recording it runs one node's program without the other nodes, possibly under gdb "
          "or valgrind. The program must be linked with librose-rr. Messages, times, random numbers and the order of "
          "locks come from the node's recording (see rose_rr.h). Such a replay needs no privilege and no "
          "configuration. The exit code is 0 when the recording was replayed to its end, or to the point where the "
          "recorded program was killed, whatever the command's exit status. It is 1 when the replay diverged; the "
          "message then names the record. It is 2 when the recording cannot be replayed.",
      .examples = {"rose replay schedule.toml -c rose.toml --runs 10",
                   "rose replay schedule.toml -c rose.toml --expect fixed --junit replay.xml",
                   "rose replay tests/faults --jobs 4 --filter 'split-*' --tap replay.tap",
                   "rose replay --recording n1/recording.1.rr -- gdb --args ./server --id 1"},
      .options =
          {
              {.names = "schedule",
               .slot = &options->places,
               .value = "SCHEDULE|FOLDER",
               .help = "Schedules, or folders that contain schedules; with --recording: the command, after --",
               .completes = Completes::file},
              {.names = "--recording",
               .slot = &options->alone.recording,
               .value = "FILE",
               .help = "Replay one node alone from this recording of librose-rr, or from the newest recording in this "
                       "folder",
               .completes = Completes::file},
              {.names = "--node",
               .slot = &options->alone.node,
               .value = "NODE",
               .help = "With --recording: the node whose recording in the folder is used; a recording of another node "
                       "is refused",
               .completes = Completes::node},
              {.names = "--patience",
               .slot = &options->alone.patience,
               .value = "DURATION",
               .help = "With --recording: the replay has diverged when the command is idle for this long without "
                       "replaying a record",
               .otherwise = "10s"},
              {.names = "-c,--config",
               .slot = &options->config,
               .value = "FILE",
               .help = "The deployment; without a slash in the name, each schedule of a folder may have its own "
                       "configuration of that name",
               .completes = Completes::file},
              {.names = "--profile",
               .slot = &options->profile,
               .value = "FILE",
               .help = "The profile of fault-free runs, from 'rose profile'",
               .otherwise = "profile.json beside the configuration, if there is one",
               .completes = Completes::file},
              {.names = "--filter",
               .slot = &options->filter,
               .value = "GLOB",
               .help = "Replay only schedules whose name or path matches",
               .one_each = true},
              {.names = "--exclude",
               .slot = &options->exclude,
               .value = "GLOB",
               .help = "Leave out schedules whose name or path matches",
               .one_each = true},
              {.names = "--runs",
               .slot = &options->runs,
               .value = "N",
               .help = "How many runs",
               .otherwise = "confirm_runs of the configuration",
               .range = {{1, 100000}}},
              {.names = "--jobs",
               .slot = &options->jobs,
               .value = "N|auto",
               .help = "Number of parallel runs; with several schedules, number of schedules that run in parallel. "
                       "auto: the largest number that does not change the timing of control runs",
               .otherwise = "the number in jobs of the configuration, otherwise 1; 1 for several schedules"},
              {.names = "--expect",
               .slot = &options->expect,
               .value = "WHAT",
               .help = "bug: exit with 0 when the bug was reproduced at the target rate; fixed: exit with 0 when the "
                       "bug never occurred although every fault was effective",
               .choices = {"bug", "fixed"}},
              {.names = "--quarantine",
               .slot = &options->quarantine,
               .value = "RATE",
               .help = "A schedule that reproduces at this rate or above, but below target_rate, is flaky: it is "
                       "reported, but is not a failure"},
              {.names = "--junit",
               .slot = &options->junit,
               .value = "FILE",
               .help = "Write a JUnit report: one test case per schedule, and one per run",
               .completes = Completes::file},
              {.names = "--tap",
               .slot = &options->tap,
               .value = "FILE",
               .help = "Write a report in the Test Anything Protocol, version 14: one line per schedule",
               .completes = Completes::file},
              {.names = "--report",
               .slot = &options->report,
               .value = "DIR",
               .help = "Write the record of all runs, their traces and results, and report.html to this folder",
               .completes = Completes::folder},
              {.names = "--stacks",
               .slot = &options->stacks,
               .help = "Show in the table, the report and --json the stacks of the threads that each fault affected "
                       "when it fired (for each fault, only the first few stacks). This is the default"},
              {.names = "--no-stacks",
               .slot = &options->no_stacks,
               .help = "Do not record the stacks of the threads that faults affect"},
              {.names = "--keep", .slot = &options->keep, .help = "Keep all run directories"},
              {.names = "--allow-attached",
               .slot = &options->allow_attached,
               .help = "Allow faults on nodes that rose did not start; they may be production"},
          },
      .environment = {{"ROSE_RR",
                       "rose sets it to replay:FILE for the command. With record:FILE, a program that is linked with "
                       "librose-rr records itself."},
                      {"ROSE_RR_WINDOW, ROSE_RR_KEEP",
                       "Read by a program that records itself: the size of its window in bytes (16MiB), and how many "
                       "recordings are kept if FILE contains %n (8)."}},
      .files =
          {{"DIR/report.html",
            "With --report: a self-contained page with the rate, and the time line of one run of each verdict. With "
            "several schedules, each has its own page in DIR/NAME."}},
      .run = [options](const Common& common) { return run_replay(*options, common); },
  };
}

}  // namespace rose::cli
