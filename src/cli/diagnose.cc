// rose diagnose: finds the schedule that reproduces a failure from its dump or logs.
#include <algorithm>
#include <array>
#include <set>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/trim.h"
#include "cli/cluster_runner.h"
#include "cli/code_map.h"
#include "cli/command.h"
#include "cli/log_evidence.h"
#include "cli/page.h"
#include "cli/report_folder.h"
#include "deploy/disk.h"
#include "deploy/image_files.h"
#include "diagnose/diagnose.h"
#include "engine/ahead.h"
#include "engine/fleet.h"
#include "evidence/nodes.h"
#include "kernel/probe.h"
#include "replay/repeat.h"
#include "replay/side_by_side.h"
#include "report/results.h"
#include "weights/weights.h"

namespace rose::cli {
namespace {

struct DiagnoseOptions {
  std::vector<std::string> traces;
  std::vector<std::string> logs;
  std::string config = "rose.toml";
  std::string profile;
  std::string out = "schedule.toml";
  std::vector<std::string> map;
  std::vector<std::string> rule_out;
  std::string report;
  bool plan = false;
  std::optional<std::string> jobs;
  std::string engine;
  std::optional<int> workers;
  bool redact = false;
  bool resume = false;
  bool keep = false;
  bool allow_attached = false;
  std::vector<std::string> without;
  std::string weights;
  bool show_weights = false;
  std::string stop_after = "minimised";
};

constexpr std::array<std::pair<std::string_view, diagnose::StopAfter>, 3> kStops = {{
    {"found", diagnose::StopAfter::found},
    {"confirmed", diagnose::StopAfter::confirmed},
    {"minimised", diagnose::StopAfter::minimised},
}};

std::vector<std::string> parts_of_the_search() {
  std::vector<std::string> names;
  for (const diagnose::Part& part : diagnose::parts()) names.emplace_back(part.name);
  return names;
}

// The events of the failure for the report's time line, with one lane for each node of the deployment. The diagnosis's
// mapping determines the node to which a host or an address in the dumps belongs.
std::vector<report::Source> incident_of(const diagnose::Inputs& inputs,
                                        const std::shared_ptr<const diagnose::NodeMap>& nodes) {
  std::vector<report::Source> incident;
  for (std::size_t i = 0; i < inputs.sources.size(); ++i) {
    const evidence::Source& source = inputs.sources[i];
    incident.emplace_back(source, source.observations).node = [nodes, i](const trace::Event& event) {
      const int node = nodes->of(i, event);
      return node >= 0 ? nodes->name(node) : nodes->dump_name(i, event);
    };
  }
  return incident;
}

std::string describe_dump(const std::string& file, const evidence::Source& dump) {
  std::string text = fmt::format("{}: {} events", file, dump.observations.size());
  if (!dump.meta.host.empty()) text += " of " + dump.meta.host;
  if (!dump.observations.empty())
    text += fmt::format(", {} to {}", wall_clock(dump.observations.front().ts_ns),
                        wall_clock(dump.observations.back().ts_ns));
  if (dump.meta.lost != 0) text += fmt::format(", {} lost", dump.meta.lost);
  if (!dump.meta.trigger.empty()) text += ", written by " + dump.meta.trigger;
  return text;
}

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

// Rounds the time, because it is only an upper bound.
std::string rough_time(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", std::max(1.0, seconds));
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string progress_line(const diagnose::Progress& p, double seconds) {
  const std::string left = p.seconds_left > 0 ? fmt::format(" or {}", rough_time(p.seconds_left)) : "";
  return fmt::format("diagnose: level {}, schedule {}, run {} ({:.0f} s, at most {} runs{} left, {} {:.0f} %): {}",
                     p.level, p.schedules, p.runs, seconds, p.runs_left, left,
                     p.testing_rate > 0 ? "its rate" : "best rate",
                     (p.testing_rate > 0 ? p.testing_rate : p.best_rate) * 100, p.doing);
}

Result<void> write_first_schedule(const std::string& file, const diagnose::Tried& first) {
  return write_file(file,
                    schedule::to_toml(first.schedule,
                                      fmt::format("Reproduced the bug once, in a search of rose diagnose at level {}. "
                                                  "Its replay rate has not been measured.\n{}",
                                                  first.level, diagnose::in_words(first))),
                    0644);
}

Result<void> write_schedule(const std::string& file, const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.unconfirmed && diagnosis.first) return write_first_schedule(file, diagnosis.tried[*diagnosis.first]);
  const auto [low, high] = diagnosis.interval;
  const std::string comment =
      fmt::format("Found by rose diagnose at level {}: {} of {} runs reproduced (95 % interval {:.2f}-{:.2f}).\n{}",
                  diagnosis.level, diagnosis.tally.reproduced, diagnosis.tally.conclusive(), low, high,
                  diagnose::in_words(diagnosis));
  return write_file(file, schedule::to_toml(*diagnosis.found, comment), 0644);
}

int diagnosis_exit_code(const diagnose::Diagnosis& diagnosis) {
  // The exit code is also 0 if the search ended, at the user's request or by Ctrl-C, before it was known whether the
  // target rate is reached.
  if (diagnosis.verdict == schedule::Verdict::reproduced) return 0;
  return diagnosis.verdict == schedule::Verdict::inconclusive ? 4 : 1;
}

Result<std::string> diagnosis_page(const report::DiagnosisReport& report, const diagnose::Inputs& inputs,
                                   const ClusterRunner& runner, const replay::RunStore& store,
                                   const DiagnoseOptions& options, const config::Config& config) {
  report::PageContext context = page_context(config.node_names());
  for (std::size_t i = 0; i < options.traces.size(); ++i)
    context.environment.emplace_back(i == 0 ? "Dump" : "", describe_dump(options.traces[i], inputs.sources[i]));
  for (std::size_t i = 0; i < options.logs.size(); ++i)
    context.environment.emplace_back(i == 0 ? "Log" : "", options.logs[i]);
  context.environment.emplace_back("Profile", options.profile.empty() ? "none" : options.profile);
  add_deployment(context, config, options.config);
  context.environment.emplace_back(
      "Search",
      fmt::format("seed {}, target rate {:.2f}, at most {} runs, {} to confirm, {} in parallel", config.diagnose.seed,
                  config.diagnose.target_rate, config.diagnose.max_runs, config.diagnose.confirm_runs, report.jobs));
  if (!report.backend.empty()) context.environment.emplace_back("Syscall faults by", report.backend);
  if (!options.redact) context.environment.emplace_back("Record of the runs", store.folder().parent_path().string());

  ROSE_TRY(auto nodes, diagnose::NodeMap::make(inputs));
  std::optional<schedule::RunResult> run;
  if (const diagnose::Diagnosis& diagnosis = *report.diagnosis; diagnosis.found)
    if (const schedule::RunResult* known = runner.reproducing(*diagnosis.found)) {
      run = *known;
      run->trace = store.recorded_trace(run->number);
    }
  return report::diagnosis_html(report,
                                incident_of(inputs, std::make_shared<const diagnose::NodeMap>(std::move(nodes))),
                                run ? &*run : nullptr, context);
}

// Makes a run without faults, which shows what is normal in the logs and when nodes make which calls. This run is also
// the search's control run.
Result<void> compare_with_a_run(LogEvidence& logs, ClusterRunner& runner, replay::RunStore& store,
                                const config::Config& config, diagnose::Inputs& inputs) {
  schedule::Schedule none;
  none.name = config.name;
  log::info("a run without faults, to see its logs");
  store.keep_control(true);
  Result<schedule::RunResult> made = runner.run(none);
  store.keep_control(false);
  ROSE_TRY(schedule::RunResult control, std::move(made));
  if (!logs.compared()) logs.look(store.directory_of(control.number), control);  // the run was read from the record
  logs.add_to(inputs, &control.trace);
  runner.give(none, std::move(control));
  return {};
}

Result<engine::Engine> engine_of(const DiagnoseOptions& options, config::Config& config) {
  config::DiagnoseOptions& diagnose = config.diagnose;
  // Options in the configuration for a different engine do not apply.
  if (!options.engine.empty() && options.engine != diagnose.engine) {
    if (diagnose.engine != "local") diagnose.engine_options.clear();
    if (options.engine != "ssh") diagnose.hosts.clear();
    diagnose.engine = options.engine;
    if (options.engine == "local") diagnose.workers = 0;
  }
  if (options.workers) diagnose.workers = *options.workers;
  Result<engine::Engine> made = engine::Engine::make({.engine = diagnose.engine,
                                                      .workers = diagnose.workers,
                                                      .hosts = diagnose.hosts,
                                                      .worker = diagnose.worker,
                                                      .options = diagnose.engine_options,
                                                      .apart = config.deployment.network == config::Network::host});
  // Without options on the command line, the mistake is in the file, so the error refers to the file.
  if (!made && options.engine.empty() && !options.workers)
    return Unexpected(Error{ErrorKind::input,
                            fmt::format("{}: [diagnose]: {}", config.file.string(), made.error().message),
                            made.error().hint});
  return made;
}

// Prepares what workers need: the deployment's files and the parameters of the engine.
Result<std::unique_ptr<engine::Fleet>> make_fleet(const DiagnoseOptions& options, const config::Config& config,
                                                  const diagnose::Inputs& inputs, engine::Engine engine, NodeCode& code,
                                                  LogEvidence* logs) {
  // The files that the diagnosis reads and writes are not part of the deployment, even if they are in its folder.
  std::vector<std::filesystem::path> without = {options.out, "/proc/self/fd/1", "/proc/self/fd/2"};
  if (!options.report.empty()) without.emplace_back(options.report);
  for (const auto* files : {&options.traces, &options.logs})
    for (const std::string& file : *files) without.emplace_back(file);
  std::vector<std::string> exclude = config.diagnose.exclude;
  exclude.emplace_back(".git");
  ROSE_TRY(engine::Tree tree, engine::read_tree(config.directory, exclude, without));
  engine::FleetOptions fleet;
  fleet.version = ROSE_VERSION;
  fleet.config = config.file.filename();
  if (inputs.profile) fleet.profile = &*inputs.profile;
  std::error_code ignored;
  for (const config::Node& node : config.nodes)
    for (const std::string& binary : node.binaries) {
      const std::filesystem::path inside =
          std::filesystem::weakly_canonical(binary, ignored).lexically_relative(tree.root);
      if (!inside.empty() && *inside.begin() != "..") continue;
      if (Result<std::string> digest = engine::digest_of(binary)) fleet.elsewhere.emplace(binary, *std::move(digest));
    }
  fleet.allow_attached = options.allow_attached;
  fleet.keep = options.keep;
  fleet.silence_ns = config.diagnose.worker_silence_ns;
  fleet.run_limit_ns = engine::run_limit(config);
  fleet.code_book = &code.methods();
  if (logs != nullptr) {
    fleet.logs = true;
    fleet.seen = [logs](const std::filesystem::path& run_dir, logs::Watch::Growth growth) {
      logs->seen(run_dir, std::move(growth));
    };
  }
  log::info(
      "{} worker{} of {} make{} the runs; {} files ({:.1f} MiB) are copied to each", engine.workers(),
      engine.workers() == 1 ? "" : "s", config.diagnose.engine, engine.workers() == 1 ? "s" : "",
      std::count_if(tree.entries.begin(), tree.entries.end(), [](const engine::Entry& entry) { return !entry.folder; }),
      static_cast<double>(tree.bytes()) / (1 << 20));
  return std::make_unique<engine::Fleet>(std::move(engine), std::move(tree), std::move(fleet));
}

// Finds the profile where `rose profile` writes it: in the current folder or beside the configuration.
std::string where_a_profile_is(const std::string& config) {
  for (const std::filesystem::path& folder : {std::filesystem::path(), std::filesystem::path(config).parent_path()}) {
    const std::filesystem::path profile = folder / "profile.json";
    std::error_code unreadable;
    if (std::filesystem::exists(profile, unreadable)) return fmt::format("{0} exists: --profile {0}", profile.string());
  }
  return fmt::format("rose profile -c {} creates one", config);
}

// The input of the diagnosis according to the command line.
struct Given {
  diagnose::Inputs inputs;
  std::unique_ptr<LogEvidence> logs;  // null without --log
};

Result<Given> read_given(const DiagnoseOptions& options, const config::Config& config) {
  Given given;
  diagnose::Inputs& inputs = given.inputs;
  inputs.config = &config;
  for (const auto& [name, stop] : kStops)
    if (options.stop_after == name) inputs.stop_after = stop;
  inputs.simplify = config.diagnose.simplify && inputs.stop_after == diagnose::StopAfter::minimised;
  ROSE_TRY(inputs.host_to_node, parse_map(options.map));
  inputs.without = {options.without.begin(), options.without.end()};
  inputs.ruled_out = {options.rule_out.begin(), options.rule_out.end()};
  ROSE_TRY(inputs.profile, load_profile(options.profile));
  if (options.traces.empty() && options.logs.empty())
    return fail(ErrorKind::usage, "neither --trace nor --log is given: there is nothing to diagnose",
                "give a dump of the failure (--trace dump.bin), its logs (--log n1=server.log), or both");
  for (const std::string& file : options.traces) {
    ROSE_TRY(trace::Trace dump, load_trace(file));
    inputs.sources.push_back(evidence::of_dump(std::move(dump)));
  }
  diagnose::leave_out_evidence(inputs);
  if (!options.logs.empty()) {
    ROSE_TRY(given.logs, LogEvidence::read(options.logs, config, inputs.host_to_node));
  }
  if (options.profile.empty())
    log::warning("no --profile: normal failures of this system cannot be distinguished from others; {}",
                 where_a_profile_is(options.config));
  return given;
}

Result<void> check_before_running(const DiagnoseOptions& options, const config::Config& config, bool here) {
  if (here && config.diagnose.jobs) ROSE_CHECK(replay::check_jobs(config, *config.diagnose.jobs));
  if (options.resume && options.report.empty())
    return fail(ErrorKind::usage, "--resume continues from a record, which exists only with --report DIR");
  if (options.redact && (options.resume || options.keep))
    return fail(ErrorKind::usage, fmt::format("--redact keeps no record and no runs, so it cannot be combined with {}",
                                              options.resume ? "--resume" : "--keep"));
  if (here) {
    ROSE_CHECK(need_root("diagnose"));
    ROSE_CHECK(need_process_ids("diagnose"));
  }
  return check_output("-o", options.out);
}

double seconds_since(std::int64_t began_ns) { return static_cast<double>(monotonic_ns() - began_ns) / 1e9; }

// Finds the kinds of resource faults that this machine supports.
void find_limits(diagnose::Inputs& inputs) {
  inputs.power = deploy::Disk::check().has_value();
  inputs.limits = {schedule::FaultKind::descriptors, schedule::FaultKind::disk_full};
  if (kernel::probe("memory_controller").ok) inputs.limits.insert(schedule::FaultKind::memory);
  if (inputs.power && deploy::PacedFile::check()) inputs.limits.insert(schedule::FaultKind::disk_slow);
}

bool can_override(const config::Config& config) {
  const auto not_ours = [](const config::Node& node) { return !node.entered_by_rose(); };
  return config.inject.syscall != config::Backend::seccomp &&
         std::any_of(config.nodes.begin(), config.nodes.end(), not_ours) && kernel::probe("override_return").ok;
}

// Runs the search and reports progress. A schedule is written as soon as it is found, before it is simplified, because
// simplifying may take as long as finding it.
Result<diagnose::Diagnosis> search(const DiagnoseOptions& options, const diagnose::Inputs& inputs,
                                   ClusterRunner& runner, std::int64_t began_ns, bool recorded,
                                   std::optional<double>& first_seconds) {
  const auto announce = [&](const diagnose::Tried& first) {
    if (first_seconds) return;
    first_seconds = seconds_since(began_ns) + runner.recorded_seconds();
    log::end_progress();
    if (const Result<void> written = write_first_schedule(options.out, first); !written)
      log::warning("{}", written.error().message);
    log::info("first reproduced after {:.0f} s: {} ({} contains the schedule{})", *first_seconds,
              trimmed(diagnose::in_words(first)), options.out,
              inputs.stop_after == diagnose::StopAfter::found
                  ? ""
                  : "; its replay rate is measured next, and Ctrl-C keeps the schedule");
  };
  bool kept = false;
  std::set<std::string> warned;
  Result<diagnose::Diagnosis> made = diagnose::diagnose(inputs, runner, [&](const diagnose::Progress& p) {
    if (p.warnings != nullptr)
      for (const std::string& warning : *p.warnings)
        if (warned.insert(warning).second) {
          log::end_progress();
          log::warning("{}", warning);
        }
    if (p.first != nullptr) announce(*p.first);
    if (p.found != nullptr && !kept) {
      kept = true;
      log::end_progress();
      if (const Result<void> written = write_schedule(options.out, *p.found); !written)
        log::warning("{}", written.error().message);
      else
        log::info(
            "confirmed: {} of {} runs reproduced the bug; {} contains the schedule; {} (Ctrl-C keeps it as it is)",
            p.found->tally.reproduced, p.found->tally.conclusive(), options.out,
            inputs.simplify
                ? fmt::format("minimising it next, in at most {} runs; then its replay rate is measured", p.runs_left)
                : "its replay rate is known");
    }
    log::progress(progress_line(p, seconds_since(began_ns)));
  });
  log::end_progress();
  if (made && made->unconfirmed && made->first) announce(made->tried[*made->first]);
  if (recorded && (made ? made->interrupted : made.error().kind == ErrorKind::cancelled))
    log::info("the record is kept: the same command with --resume continues from here");
  return made;
}

std::vector<report::PlanFile> files_of(const LogEvidence* logs) {
  std::vector<report::PlanFile> files;
  if (logs == nullptr) return files;
  for (const logs::Source& source : logs->sources())
    files.push_back({source.path.string(), source.messages, source.timed, source.node});
  return files;
}

// Lists, as JSON, the numbers that --weights can set and the parts of the search that --without can leave out.
std::string weights_json() {
  Json weights = Json::array(), parts = Json::array();
  for (const diagnose::WeightEntry& entry : diagnose::weights()) {
    weights.push_back(
        {{"name", entry.name}, {"value", entry.value}, {"unit", diagnose::unit_name(entry.unit)}, {"why", entry.why}});
    if (entry.feature == nullptr) continue;
    weights.back()["sign"] = entry.feature->sign;
    weights.back()["prior"] = entry.feature->prior;
  }
  for (const diagnose::Part& part : diagnose::parts())
    parts.push_back({{"name", part.name}, {"of", diagnose::part_name(part.of)}, {"what", part.what}});
  return json_line({{"weights", std::move(weights)}, {"parts", std::move(parts)}});
}

Result<int> run_diagnose(const DiagnoseOptions& options, const Common& common) {
  if (!options.weights.empty()) ROSE_CHECK(diagnose::read_weights(options.weights));
  if (options.show_weights) {
    print(common.json ? weights_json() : diagnose::weights_toml());
    return 0;
  }
  ROSE_TRY(config::Config config, config::read_config(options.config));
  std::unique_ptr<deploy::ImageFiles> image_files;
  if (options.plan) {
    // Nothing is run, so no files are copied from images.
    for (config::Node& node : config.nodes)
      if (node.container) node.binaries.clear();
  } else {
    ROSE_TRY(image_files, deploy::take_programs_out(config));
  }
  if (options.jobs) {
    ROSE_TRY(config.diagnose.jobs, jobs_option(*options.jobs));
  }
  ROSE_TRY(Given given, read_given(options, config));
  auto& [inputs, logs] = given;
  inputs.overrides = can_override(config);
  if (options.plan) {
    if (logs) logs->add_to(inputs, nullptr);
    ROSE_TRY(const diagnose::Plan plan, diagnose::make_plan(inputs));
    print(common.json ? report::plan_json(plan, files_of(logs.get())) : report::plan_text(plan, !inputs.recorded()));
    return 0;
  }

  ROSE_CHECK(replay::need_workload_and_oracle(config));
  ROSE_TRY(const engine::Engine engine, engine_of(options, config));
  const bool here = engine.kind() == engine::EngineKind::local;
  ROSE_CHECK(check_before_running(options, config, here));
  find_limits(inputs);
  ROSE_CHECK(cancel::install());
  export_own_name();

  ROSE_TRY(ReportFolder folder, ReportFolder::make(options.report, options.redact));
  if (Redactor* redactor = folder.redactor(); redactor != nullptr) {
    for (const evidence::Source& one : inputs.sources) redactor->add_host(one.meta.host);
    for (const auto& [host, node] : inputs.host_to_node) redactor->add_host(host);
    if (logs)
      for (const std::string& host : logs->hosts()) redactor->add_host(host);
  }
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(folder.runs(), options.keep, "diagnose", config.file));
  std::vector<replay::RunStore::Recorded> recorded;
  if (options.resume) {
    ROSE_TRY(recorded, store.recorded(config));
    log::info("resuming after {} recorded runs", recorded.size());
  } else {
    ROSE_CHECK(store.start_over(config));
  }
  const std::int64_t began_ns = monotonic_ns();
  NodeCode code(config);
  inputs.code = &code;
  ClusterRunner runner(config, inputs.profile, store, code.methods(), options.allow_attached, std::move(recorded));
  std::unique_ptr<engine::Fleet> fleet;
  std::optional<engine::Ahead> ahead;
  if (!here) {
    ROSE_TRY(fleet, make_fleet(options, config, inputs, engine, code, logs.get()));
    runner.work_with(ahead.emplace(*fleet));
  }
  if (logs) runner.look_with(*logs, here);
  if (here) {
    store.keep_control(logs != nullptr);
    ROSE_CHECK(runner.choose_jobs(options.resume));
    store.keep_control(false);
  }
  if (logs) {
    ROSE_CHECK(compare_with_a_run(*logs, runner, store, config, inputs));
  }
  std::optional<double> first_seconds;
  Result<diagnose::Diagnosis> made =
      search(options, inputs, runner, began_ns, folder && !options.redact, first_seconds);
  if (ahead && ahead->made() > 0)
    log::info("workers made {} runs, {} of which were requested", ahead->made(), ahead->used());
  fleet.reset();
  ROSE_TRY(const diagnose::Diagnosis diagnosis, std::move(made));
  if (runner.unused() > 0)
    log::info(
        "{} recorded runs were not needed: they were made ahead, or the dump, the profile or [diagnose] has changed "
        "since they were made",
        runner.unused());
  if (runner.made_for_nothing() > 0)
    log::info("{} further runs were made ahead, in parallel to others, and were not needed", runner.made_for_nothing());

  std::string schedule_path;
  if (diagnosis.found) {
    schedule_path = options.out;
    ROSE_CHECK(write_schedule(schedule_path, diagnosis));
  }
  report::DiagnosisReport report;
  report.diagnosis = &diagnosis;
  report.name = config.name;
  report.schedule_path = schedule_path;
  report.config_path = options.config;
  report.profile_path = options.profile;
  report.target_rate = config.diagnose.target_rate;
  report.seed = config.diagnose.seed;
  report.seconds = seconds_since(began_ns) + runner.recorded_seconds();
  report.first_reproduction_seconds = first_seconds;
  report.jobs = runner.most_side_by_side();
  report.backend = runner.backend();
  report.recorded =
      std::any_of(config.nodes.begin(), config.nodes.end(), [](const config::Node& node) { return node.record; });
  if (!options.redact)
    for (const std::filesystem::path& directory : store.kept()) report.kept.push_back(directory.string());
  if (folder) report.page = folder.file("report.html").string();
  const std::string json = report::diagnosis_json(report);
  const std::string text = report::diagnosis_text(report);
  print(common.json ? json : text);  // print first: hours of work must not be lost if the disk is full
  if (folder) {
    ROSE_CHECK(folder.write("diagnosis.json", json));
    ROSE_CHECK(folder.write("diagnosis.txt", text));
    if (logs && diagnosis.found)
      if (const schedule::RunResult* shown = runner.reproducing(*diagnosis.found))
        report.logs = logs->beside(shown->number);
    ROSE_TRY(const std::string page, diagnosis_page(report, inputs, runner, store, options, config));
    ROSE_CHECK(folder.write_page("report.html", page));
  }
  return diagnosis_exit_code(diagnosis);
}

}  // namespace

Command diagnose_command() {
  auto options = std::make_shared<DiagnoseOptions>();
  return {
      .name = "diagnose",
      .summary = "Find the fault schedule that reproduces the failure in a dump or in logs",
      .description =
          "It compares the dump with the profile, ignores what is normal, and ranks the remaining events. Then it "
          "tries fault schedules in the test deployment, simple ones first. Each run shows which conditions were met "
          "and which faults fired. A schedule that reproduces the bug is written to the output file, and simplified as "
          "long as its rate does not fall. Further runs then decide whether its replay rate reaches the target.\n\nThe "
          "diagnosis starts with a run without faults. If the bug occurs in that run, rose reports this at once. If no "
          "schedule reaches the target rate, the best one is written with its rate, and the exit code is 1.\n\nWith "
          "--log it reads logs instead of a dump. A schedule should reproduce those messages of the logs that do not "
          "occur in a run without faults. The errors, restarts, lost peers and Java exceptions in these messages are "
          "the first candidates, then the calls shortly before them. Logs can have times and levels in any usual form, "
          "or be JSON, syslog or the journal's export, compressed or not.\n\nWith --engine, workers on other machines "
          "make the runs. An existing engine (Slurm, ssh, Kubernetes, a command) starts 'rose worker', which must run "
          "as root and have the same version; the configuration's folder is copied to it. Workers make runs before the "
          "search requests them, and the search receives the results in the order of its requests. Therefore the same "
          "seed and verdicts give the same search with any number of workers. If a worker is lost, another one repeats "
          "its run.\n\n--report keeps every run; after Ctrl-C the same command with --resume continues the diagnosis. "
          "If Ctrl-C comes after a schedule was confirmed, the schedule is kept and the exit code is 0.",
      .examples = {"rose diagnose --trace dump.bin -c rose.toml --profile profile.json",
                   "rose diagnose --trace a.bin b.bin --map db-7=n1 db-8=n2 -c rose.toml --plan",
                   "rose diagnose --log n1=server.log --log n2=server2.log.gz -c rose.toml",
                   "rose diagnose --trace dump.bin -c rose.toml --profile profile.json --engine slurm --workers 8"},
      .options =
          {
              {.names = "--trace",
               .slot = &options->traces,
               .value = "FILE",
               .help = "Dumps of the failure, one per host",
               .completes = Completes::file},
              {.names = "--log",
               .slot = &options->logs,
               .value = "[NODE=]FILE",
               .help = "Logs of the failure, instead of a dump or in addition to it; NODE is needed unless the path "
                       "or the lines name the node",
               .completes = Completes::file},
              {.names = "-c,--config",
               .slot = &options->config,
               .value = "FILE",
               .help = "The test deployment, its workload and oracle",
               .completes = Completes::file},
              {.names = "--profile",
               .slot = &options->profile,
               .value = "FILE",
               .help = "The profile, from 'rose profile'",
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write the schedule",
               .completes = Completes::file},
              {.names = "--map",
               .slot = &options->map,
               .value = "HOST=NODE",
               .help = "The node of the deployment for which a host of the dump stands"},
              {.names = "--report",
               .slot = &options->report,
               .value = "DIR",
               .help = "Write the record of all runs, their traces, the result and report.html to this folder",
               .completes = Completes::folder},
              {.names = "--redact",
               .slot = &options->redact,
               .help = "With --report: keep only the result and report.html, and replace host names, addresses, user "
                       "names and long tokens in them; equal texts get equal replacements"},
              {.names = "--plan",
               .slot = &options->plan,
               .help = "Print the candidates and the first schedules, and run nothing; needs no privilege"},
              {.names = "--jobs",
               .slot = &options->jobs,
               .value = "N|auto",
               .help = "Number of parallel runs; auto: the largest number that does not change the timing of control "
                       "runs",
               .otherwise = "jobs of the configuration"},
              {.names = "--engine",
               .slot = &options->engine,
               .value = "ENGINE",
               .help = "What starts workers that make the runs: slurm, ssh, kubernetes, or a command that starts one "
                       "worker, such as 'rose worker'; local: this process makes the runs",
               .otherwise = "engine of the configuration"},
              {.names = "--workers",
               .slot = &options->workers,
               .value = "N",
               .help = "How many workers to start; each makes one run at a time",
               .otherwise = "workers of the configuration",
               .range = {{1, 1000}}},
              {.names = "--resume", .slot = &options->resume, .help = "Continue from the record in --report DIR"},
              {.names = "--keep", .slot = &options->keep, .help = "Keep all run directories"},
              {.names = "--allow-attached",
               .slot = &options->allow_attached,
               .help = "Allow faults on nodes that rose did not start; they may be production"},
              {.names = "--stop-after",
               .slot = &options->stop_after,
               .value = "STAGE",
               .help =
                   "End after the first reproduction (found), when the replay rate has been measured (confirmed), or "
                   "when the schedule has also been minimised",
               .choices = {"found", "confirmed", "minimised"}},
              {.names = "--rule-out",
               .slot = &options->rule_out,
               .value = "ID",
               .help = "Do not try the candidate or rival with this ID, because it did not happen in production"},
              {.names = "--without",
               .slot = &options->without,
               .value = "PART",
               .help = "Disable a source of evidence, a rule of ranking or a part of the search, to measure its effect "
                       "(--show-weights --json says what each part does)",
               .by_commas = true,
               .choices = parts_of_the_search()},
              {.names = "--weights",
               .slot = &options->weights,
               .value = "FILE",
               .help =
                   "File with the odds, shares and thresholds to use instead of the built-in ones, in the format that "
                   "--show-weights prints",
               .completes = Completes::file},
              {.names = "--show-weights",
               .slot = &options->show_weights,
               .help = "Print all weights with unit and reason, and run nothing"},
          },
      .files = {{"DIR/report.html",
                 "With --report: a self-contained page with the schedule in words, the time line, and all trials."},
                {"DIR/record.jsonl, DIR/traces/", "With --report: every run and its trace; --resume reads them."}},
      .run = [options](const Common& common) { return run_diagnose(*options, common); },
  };
}

}  // namespace rose::cli
