// rose explain: finds the code that mishandled the faults of a schedule.
#include "explain/explain.h"

#include <algorithm>
#include <cstdlib>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/toml.h"
#include "cli/command.h"
#include "cli/explain_queries.h"
#include "cli/explain_runs.h"
#include "cli/page.h"
#include "cli/report_folder.h"
#include "deploy/image_files.h"
#include "explain/compare.h"
#include "explain/kept.h"
#include "explain/model.h"
#include "inject/injector.h"
#include "replay/launched.h"
#include "report/explanation.h"

namespace rose::cli {
namespace {

constexpr int kWantedRuns = 5;
constexpr std::size_t kMostKeptBytes = std::size_t{512} << 20;  // largest file with kept runs that is read

struct ExplainOptions {
  std::string schedule;
  std::string config = "rose.toml";
  std::optional<std::string> out;
  std::string from;
  bool redact = false;
  std::optional<int> runs;
  std::optional<std::string> jobs;
  std::string report;
  std::vector<std::string> ask;
  bool deepen = false;
  bool no_deepen = false;
  std::vector<std::string> without;
  std::string weights;
  bool show_weights = false;
  bool keep = false;
  bool allow_attached = false;
};

// The result if there is no failing run or nothing to compare it with.
explain::Explanation unexplained(const replay::Contrast& made) {
  explain::Explanation out;
  if (made.reproduced == 0 && made.missed > 0) {
    out.verdict = explain::Verdict::not_reproduced;
    out.reason =
        fmt::format("none of {} runs of the schedule reproduced the bug; without it there is nothing to explain",
                    made.missed + made.inconclusive);
  } else if (made.reproduced == 0) {
    out.reason = fmt::format("none of {} runs of the schedule was conclusive: {}", made.inconclusive, made.last_reason);
  } else if (made.sound_hits > 0) {
    out.reason = fmt::format("the bug also occurs without faults: in {} of {} runs", made.sound_hits,
                             made.sound_hits + made.sound_unknown);
  } else {
    out.reason = fmt::format("no run without faults was conclusive: {}", made.last_reason);
  }
  return out;
}

int exit_code_of(explain::Verdict verdict) {
  switch (verdict) {
    case explain::Verdict::explained: return 0;
    case explain::Verdict::not_reproduced: return 1;
    case explain::Verdict::nothing_found:
    case explain::Verdict::inconclusive: return 4;
  }
  return 4;
}

// The best suspects in one line, or why there are none.
std::string in_one_line(const explain::Explanation& explanation) {
  if (explanation.suspects.empty()) return explanation.reason;
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(explanation.suspects.size(), 3); ++i)
    out += fmt::format("{}{} ({:.2f})", i == 0 ? "" : ", ", explanation.suspects[i].function,
                       explanation.suspects[i].score);
  return out;
}

// Fills in the report from `kept`. This serves both runs that were made now and runs that an earlier explanation kept,
// so that both give the same report.
void take_over(const explain::Kept& kept, report::ExplanationReport& report) {
  report.name = kept.name;
  report.schedule = kept.input.schedule;
  report.schedule_path = kept.schedule_path;
  report.config_path = kept.config_path;
  report.runs = kept.runs;
  report.reproduced = kept.reproduced;
  report.missed = kept.missed;
  report.inconclusive = kept.inconclusive;
  report.seconds = kept.seconds;
}

// Computes the explanation again from runs that an earlier explanation kept.
Result<int> explain_again(const ExplainOptions& options, const Common& common) {
  const std::filesystem::path file = std::filesystem::path(options.from) / explain::kKeptFile;
  // read_inside() refuses a pipe, which other users may have put there if they can write to the folder
  Result<std::string> bytes = read_inside({}, file, kMostKeptBytes);
  if (!bytes) {
    bytes.error().hint = "'rose explain --report DIR' keeps its runs in DIR";
    return Unexpected(std::move(bytes).error());
  }
  ROSE_TRY(explain::Kept kept, explain::unpack(*bytes, file.string()));
  report::ExplanationReport report;
  take_over(kept, report);
  report.explanation = explain::explain_kept(kept);
  report.story = std::move(kept.input.story);
  if (options.out) {
    report.written = *options.out;
    ROSE_CHECK(write_file(*options.out, report::explanation_markdown(report)));
  }
  print(common.json ? report::explanation_json(report) : report::explanation_text(report));
  return exit_code_of(report.explanation.verdict);
}

// Keeps the runs, without paths of this machine. The report is made from the kept data, so that a later report from the
// same data is equal.
Result<void> keep_runs(explain::Kept& kept, ReportFolder& folder, const config::Config& config,
                       report::ExplanationReport& report) {
  explain::Scrub scrub;
  const std::filesystem::path run_dir = kept.input.run_dir;
  if (!run_dir.empty()) {
    scrub.prefixes.emplace_back(run_dir.string(), "/run");
    scrub.prefixes.emplace_back(run_dir.parent_path().string(), "/runs");
  }
  const std::string own = std::filesystem::absolute(config.directory).lexically_normal().string();
  if (own.size() > 1) {
    scrub.prefixes.emplace_back(own.ends_with('/') ? own : own + "/", "");
    scrub.prefixes.emplace_back(own.ends_with('/') ? own.substr(0, own.size() - 1) : own, ".");
  }
  for (const char* variable : {"TMPDIR", "HOME"})
    if (const char* home = std::getenv(variable); home != nullptr && std::string_view(home).size() > 1)
      scrub.prefixes.emplace_back(home, variable == std::string_view("HOME") ? "~" : "/tmp");
  scrub.redact = folder.redactor();
  ROSE_TRY(const std::string bytes, explain::pack(kept, scrub));
  ROSE_CHECK(write_file(folder.file(explain::kKeptFile), bytes));
  Result<explain::Kept> again = explain::unpack(bytes, explain::kKeptFile);
  if (!again) {
    log::warning("the kept runs cannot be read: {}", again.error().message);
    return {};
  }
  report.explanation = explain::explain_kept(*again);
  take_over(*again, report);
  report.story = std::move(again->input.story);
  return {};
}

std::vector<std::string> feature_names() {
  std::vector<std::string> names;
  for (const explain::FeatureEntry& one : explain::features()) names.emplace_back(one.name);
  return names;
}

// Lists, as JSON, the weights that --weights can set and the features that --without can leave out.
std::string features_json() {
  Json weights = Json::array(), parts = Json::array();
  for (const explain::FeatureEntry& one : explain::features()) {
    weights.push_back({{"name", one.name},
                       {"value", explain::weight(one.feature)},
                       {"sign", one.sign},
                       {"prior", one.prior},
                       {"why", one.what}});
    parts.push_back({{"name", one.name}, {"of", "rank"}, {"what", one.what}});
  }
  return json_line({{"weights", std::move(weights)}, {"parts", std::move(parts)}});
}

Result<int> run_explain(const ExplainOptions& options, const Common& common) {
  if (!options.weights.empty()) {
    ROSE_TRY(const std::string text, read_file(options.weights, toml::kMostBytes));
    ROSE_CHECK(explain::set_weights(text, options.weights));
  }
  explain::leave_out(options.without);
  if (options.show_weights) {
    print(common.json ? features_json() : explain::weights_toml());
    return 0;
  }
  if (!options.from.empty()) {
    if (!options.schedule.empty() || !options.report.empty() || !options.ask.empty() || options.deepen ||
        options.runs || options.redact)
      return fail(ErrorKind::usage,
                  "--from compares runs that were kept and makes none: only -o, --without and --weights can be "
                  "combined with it");
    return explain_again(options, common);
  }
  if (options.schedule.empty())
    return fail(ErrorKind::usage, "a schedule is needed, or --from DIR",
                "rose explain schedule.toml -c rose.toml, or rose explain --from DIR of an earlier --report DIR");
  if (options.deepen && options.no_deepen) return fail(ErrorKind::usage, "--deepen and --no-deepen exclude each other");
  if (options.redact && options.report.empty())
    return fail(ErrorKind::usage, "--redact applies to the files of --report DIR, and there is no --report");
  if (options.redact && options.keep)
    return fail(ErrorKind::usage, "--redact keeps no run directories, so it cannot be combined with --keep");
  const std::string out = options.out.value_or("explanation.md");
  const std::int64_t began = monotonic_ns();
  report::ExplanationReport report;
  if (options.runs && *options.runs < explain::fewest_runs())
    return fail(ErrorKind::usage,
                fmt::format("--runs {}: with that many failing and correct runs, chance alone makes a difference in "
                            "{:.0f} of 100 cases, so no difference can be significant",
                            *options.runs, 100 * explain::least_chance(*options.runs)),
                fmt::format("give --runs {} or more", explain::fewest_runs()));
  ROSE_TRY(config::Config config, config::read_config(options.config));
  ROSE_TRY(const auto image_files, deploy::take_programs_out(config));
  ROSE_TRY(report.schedule, schedule::read_schedule(options.schedule));
  ROSE_CHECK(schedule::check_nodes(report.schedule, config.node_names(), options.schedule));
  ROSE_CHECK(replay::need_workload_and_oracle(config));
  ROSE_CHECK(inject::check(report.schedule, config, options.allow_attached));
  if (report.schedule.faults.empty())
    return fail(ErrorKind::input, fmt::format("{}: it has no fault to explain", options.schedule));
  // The functions of a program that a launcher starts are known only after the launch, so the queries can be checked
  // now only if no node has a launcher.
  if (std::none_of(config.nodes.begin(), config.nodes.end(), replay::shows_no_function))
    ROSE_CHECK(replay::ask(config, options.ask));
  ROSE_CHECK(need_root("explain"));
  ROSE_CHECK(need_process_ids("explain"));
  ROSE_CHECK(check_output("-o", out));
  ROSE_CHECK(cancel::install());
  export_own_name();

  ROSE_TRY(ReportFolder folder, ReportFolder::make(options.report, options.redact));
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(folder.runs(), options.keep, "explain", config.file));
  ROSE_CHECK(store.start_over(config));
  ROSE_TRY(const replay::Launched launched, replay::follow_launchers(config, store, options.allow_attached));
  config = launched.config;
  ROSE_TRY(const replay::ValueQueries asked, replay::ask(config, options.ask));
  ROSE_TRY(const replay::Watchable watchable, replay::watchable_functions(config));
  replay::ContrastOptions contrast_options;
  ROSE_TRY(contrast_options.run.usual, replay::usual_of(config, ""));
  contrast_options.wanted = options.runs.value_or(kWantedRuns);
  ROSE_TRY(contrast_options.jobs, jobs_of(options.jobs, config, options.allow_attached));
  contrast_options.run.allow_attached = options.allow_attached;
  std::vector<std::string> java, python, javascript;
  for (const config::Node& node : watchable.config.nodes) {
    if (node.catches) java.push_back(node.name);
    if (node.python) python.push_back(node.container ? fmt::format("container {}", node.name) : node.name);
    if (node.javascript) javascript.push_back(node.name);
  }
  const std::size_t native = watchable.functions.functions.size();
  std::vector<std::string> watched;
  if (!java.empty()) watched.push_back(fmt::format("methods of the JVM in {}", fmt::join(java, ", ")));
  if (!python.empty()) watched.push_back(fmt::format("functions of Python in {}", fmt::join(python, ", ")));
  if (!javascript.empty()) watched.push_back(fmt::format("functions of JavaScript in {}", fmt::join(javascript, ", ")));
  if (native > 0 || watched.empty()) watched.push_back(fmt::format("{} functions", native));
  log::info("{} are watched; up to {} runs of the schedule, {} without faults", fmt::join(watched, " and "),
            contrast_options.most_tries(), contrast_options.most_sound());
  ComparedRuns runs(config, watchable, report.schedule, contrast_options, store);
  runs.may_add(!options.runs);
  ROSE_TRY(Compared compared, runs.make(asked, contrast_options.besides));
  const replay::Contrast made = compared.made;
  explain::Kept kept;
  kept.comparable = compared.comparable;
  const auto note_made = [&] {
    kept.input.schedule = report.schedule;
    kept.name = config.name;
    kept.schedule_path = options.schedule;
    kept.config_path = options.config;
    kept.runs = runs.made();
    kept.reproduced = made.reproduced;
    kept.missed = made.missed;
    kept.inconclusive = made.inconclusive;
    kept.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
    take_over(kept, report);
  };
  if (compared.comparable) {
    kept.input = compared.input;  // copied first, because explain() changes its input
    report.explanation = explain::explain(compared.input);
    report.story = std::move(compared.input.story);
    replay::QueryFinder finder(config);
    const OfOneSide functions(report.explanation);
    if (report.explanation.verdict == explain::Verdict::explained)
      ROSE_CHECK(ask_callers(config, finder, functions, runs, report, kept));
    if (!options.no_deepen) {
      note_made();
      report.first_answer_seconds = kept.seconds;
      // With --redact, the text is redacted only at the end, so nothing is written before.
      if (!options.redact) ROSE_CHECK(write_file(out, report::explanation_markdown(report)));
      log::info("first answer after {:.0f} s{}: {}", kept.seconds, options.redact ? "" : ", written to " + out,
                in_one_line(report.explanation));
      const Depth depth{.most = options.deepen ? std::nullopt : std::optional(kDefaultDepth * compared.seconds),
                        .expected = compared.seconds};
      ROSE_TRY(const bool reported, deepen(config, finder, options.ask, depth, runs, report, kept));
      const OfOneSide further(report.explanation);
      if (reported && further == functions) explain::add_all_callers(kept, report.explanation);
      else if (reported) ROSE_CHECK(ask_callers(config, finder, further, runs, report, kept));
    }
  } else {
    report.explanation = unexplained(made);
    report.explanation.limits = watchable.unseen;
    kept.verdict = report.explanation.verdict;
    kept.reason = report.explanation.reason;
    kept.limits = report.explanation.limits;
  }
  note_made();
  if (folder) ROSE_CHECK(keep_runs(kept, folder, config, report));
  report.written = out;
  ROSE_CHECK(write_file(out, report::explanation_markdown(report)));
  if (folder) {
    ROSE_CHECK(folder.write("explanation.md", report::explanation_markdown(report)));
    ROSE_CHECK(folder.write("explanation.json", report::explanation_json(report)));
    report::PageContext context = page_context(config.node_names());
    context.environment.emplace_back("Schedule", options.schedule);
    add_deployment(context, config, options.config);
    ROSE_CHECK(folder.write_page("report.html", report::explanation_html(report, context)));
    log::info("report: {}", folder.file("report.html").string());
  }
  print(common.json ? report::explanation_json(report) : report::explanation_text(report));
  return exit_code_of(report.explanation.verdict);
}

}  // namespace

Command explain_command() {
  auto options = std::make_shared<ExplainOptions>();
  return {
      .name = "explain",
      .summary = "Find the code that mishandled a schedule's faults",
      .synopsis = {"[OPTION...] SCHEDULE", "--from DIR [-o FILE]"},
      .description =
          "It makes runs of a schedule that reproduces the bug, alternately with runs without faults. It also makes "
          "runs in which each fault fires one call earlier or later, fires without its conditions, or is shorter. It "
          "compares what the nodes do after the first fault in failing and in correct runs: functions entered or no "
          "longer entered, failed and state-changing calls, log messages, ends of processes, silences. Differences "
          "between runs of the same kind are noise and do not count.\n\nIt prints the suspects, best first, and what "
          "happened from the fault to the symptom. If failing and correct runs differ only by noise, it reports this "
          "instead.\n\nIt watches the functions that `functions` and `sources` of the configuration name. Without "
          "these keys, it watches all functions of the node's own program that are in its debug information, or, for "
          "a JVM, the package of the main class. A node whose command is a script is started once, to find the "
          "program that it runs. The exit code is 0 when something was found, 1 when the bug was not reproduced, 4 "
          "when nothing was found or the runs were inconclusive.",
      .examples = {"rose explain schedule.toml -c rose.toml", "rose explain --from why",
                   "rose explain schedule.toml -c rose.toml --runs 8 --jobs 2 --report why",
                   "rose explain schedule.toml -c rose.toml --ask 'store(text)' 'store:return' 'store.c:31:bad'",
                   "rose explain schedule.toml -c rose.toml --deepen"},
      .options =
          {
              {.names = "schedule",
               .slot = &options->schedule,
               .value = "SCHEDULE",
               .help = "A schedule that reproduces the bug; not with --from",
               .completes = Completes::file},
              {.names = "-c,--config",
               .slot = &options->config,
               .value = "FILE",
               .help = "The deployment",
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where to write the explanation; with --from, it is written only if this option is given",
               .otherwise = "explanation.md",
               .completes = Completes::file},
              {.names = "--runs",
               .slot = &options->runs,
               .value = "N",
               .help =
                   "Make N runs that reproduce the bug, and N runs without faults. To get N runs that reproduce the "
                   "bug, at most 2 * N + 2 runs of the schedule are made. Fewer than 4 are refused, because no "
                   "difference would be significant. Without this option, if noise prevents a result, two more runs "
                   "that reproduce the bug and two more without faults are made, at most twice. One further run "
                   "records the callers of functions that only failing runs enter, and of functions that are entered "
                   "next after failed calls. Another further run, without faults, records the callers of functions "
                   "that only correct runs enter. If the schedule has a clock fault, a third further run records the "
                   "callers of functions that decided differently than without the fault, because a caller may have "
                   "read the clock",
               .otherwise = std::to_string(kWantedRuns),
               .range = {{2, 100}}},
              {.names = "--jobs",
               .slot = &options->jobs,
               .value = "N|auto",
               .help = "Number of parallel runs; auto: the largest number that does not change the timing of control "
                       "runs",
               .otherwise = "the number in jobs of the configuration, otherwise 1"},
              {.names = "--ask",
               .slot = &options->ask,
               .value = "QUERY",
               .help = "Also record this value in all runs, and report how it differs between failing and correct "
                       "runs: " +
                       std::string(symbols::kQueryForms) +
                       ". Names, types and members need debug information (-g); without it, f(arg1) and f:return are "
                       "raw integers"},
              {.names = "--deepen",
               .slot = &options->deepen,
               .help = "Make up to " + std::to_string(kMostRounds) +
                       " rounds of further queries: first for arguments, results and calls of the suspects, then for "
                       "those of the functions entered between the fault and the symptom. Each round makes N runs that "
                       "reproduce the bug and N runs without faults (N as for --runs). Queries that distinguish "
                       "failing from correct runs are repeated, and the runs of all rounds are compared together. "
                       "Without this option, all rounds together take about as long as it took to get the first "
                       "answer"},
              {.names = "--no-deepen",
               .slot = &options->no_deepen,
               .help = "Make no rounds of further queries; the first answer is the result"},
              {.names = "--report",
               .slot = &options->report,
               .value = "DIR",
               .help = "Write the record of all runs, their traces, the explanation and report.html to this folder",
               .completes = Completes::folder},
              {.names = "--from",
               .slot = &options->from,
               .value = "DIR",
               .help = "Compare again the runs that an earlier --report DIR kept; this runs nothing and needs no "
                       "privilege",
               .completes = Completes::folder},
              {.names = "--redact",
               .slot = &options->redact,
               .help = "With --report: keep neither record nor traces, and replace host names, addresses, user names "
                       "and long tokens in what is kept; equal texts get equal replacements"},
              {.names = "--without",
               .slot = &options->without,
               .value = "FEATURE",
               .help = "Leave out a feature of the ranking of suspects, to see its effect",
               .by_commas = true,
               .choices = feature_names()},
              {.names = "--weights",
               .slot = &options->weights,
               .value = "FILE",
               .help = "File with the weights to use instead of the built-in ones, in the format that --show-weights "
                       "prints",
               .completes = Completes::file},
              {.names = "--show-weights",
               .slot = &options->show_weights,
               .help = "Print all features with their weights, and run nothing"},
              {.names = "--keep", .slot = &options->keep, .help = "Keep all run directories"},
              {.names = "--allow-attached",
               .slot = &options->allow_attached,
               .help = "Allow faults on nodes that rose did not start; they may be production"},
          },
      .files =
          {{"DIR/report.html",
            "With --report: a self-contained page with the suspects, and what happened in one run, with a time line."},
           {"DIR/explained.runs",
            "With --report: the data of the runs that is compared, without paths of this machine; --from reads it."}},
      .run = [options](const Common& common) { return run_explain(*options, common); },
  };
}

}  // namespace rose::cli
