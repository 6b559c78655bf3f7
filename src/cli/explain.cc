// rose explain: from a schedule that reproduces to the code that mishandled its faults.
#include "explain/explain.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/page.h"
#include "inject/injector.h"
#include "logs/reader.h"
#include "replay/ask.h"
#include "replay/contrast.h"
#include "replay/log_times.h"
#include "replay/watchable.h"
#include "report/explanation.h"

namespace rose::cli {
namespace {

constexpr std::size_t kMostLines = 100'000;  // of the logs of one run
constexpr std::size_t kMostLineBytes = 400;
constexpr int kWantedRuns = 5;
constexpr double kFunctionShare = 0.05;  // of a processor, for watching functions: what is not seen cannot be told

struct ExplainOptions {
  std::string schedule;
  std::string config = "rose.toml";
  std::string out = "explanation.md";
  std::optional<int> runs;
  std::optional<int> jobs;
  std::string report;
  std::vector<std::string> ask;
  bool keep = false;
  bool allow_attached = false;
};

// What the runs' folders hold besides traces. Runs may go side by side.
class RunLogs {
 public:
  explicit RunLogs(const config::Config& config) : config_(config) {}

  struct Said {
    std::vector<explain::LogLine> lines;
    std::string oracle, run_dir;
    bool cut = false;
  };

  void began(const std::filesystem::path& run_dir) {
    std::vector<std::filesystem::path> folders;
    for (const config::Node& node : config_.nodes) {
      std::error_code ignored;
      if (std::filesystem::is_directory(run_dir / node.name, ignored)) folders.push_back(run_dir / node.name);
    }
    Result<replay::LogTimes> times = replay::LogTimes::watch(folders);
    const std::lock_guard lock(mutex_);
    if (times) times_.emplace(run_dir, *std::move(times));
    else log::warning("log lines will have no times: {}", times.error().message);
  }

  void ended(const std::filesystem::path& run_dir, int number) {
    const std::lock_guard lock(mutex_);
    Said said;
    const auto times = times_.find(run_dir);
    if (times != times_.end()) {
      times->second.stop();
      read(run_dir, times->second, said);
      times_.erase(times);
    }
    said.run_dir = run_dir.string();
    said.oracle = last_line(run_dir / "oracle.log");
    said_[number] = std::move(said);
  }

  [[nodiscard]] Said take(int number) {
    const std::lock_guard lock(mutex_);
    auto node = said_.extract(number);
    return node ? std::move(node.mapped()) : Said{};
  }

  [[nodiscard]] std::string words(std::uint32_t kind) const { return kinds_.text(kind); }

 private:
  static std::string last_line(const std::filesystem::path& file) {
    const Result<std::string> text = read_file(file, std::size_t{1} << 20);
    if (!text) return {};
    const std::vector<std::string> lines = split(*text, '\n');
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      if (!line->empty()) return line->substr(0, kMostLineBytes);
    return {};
  }

  void read(const std::filesystem::path& run_dir, const replay::LogTimes& times, Said& said) {
    for (const config::Node& node : config_.nodes) {
      std::vector<std::filesystem::path> files;
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(run_dir / node.name, error))
        if (entry.is_regular_file(error) && entry.path().extension() == ".log") files.push_back(entry.path());
      std::sort(files.begin(), files.end());
      for (const std::filesystem::path& file : files) {
        const logs::Input input{file, node.name};
        const Result<logs::Logs> read = logs::read_logs({&input, 1}, {}, kinds_);
        if (!read) continue;
        const std::vector<std::int64_t> written = times.times(file);
        for (const logs::NodeLog& of_node : read->nodes) {
          for (const logs::Message& message : of_node.messages) {
            if (message.line == 0 || message.line > written.size()) continue;
            if (said.lines.size() == kMostLines) {
              said.cut = true;
              return;
            }
            said.lines.push_back({written[message.line - 1], node.name, message.kind, message.level,
                                  std::string(read->text(message).substr(0, kMostLineBytes)),
                                  fmt::format("{}/{}:{}", node.name, file.filename().string(), message.line)});
          }
        }
      }
    }
  }

  const config::Config& config_;
  std::mutex mutex_;
  std::map<std::filesystem::path, replay::LogTimes> times_;
  std::map<int, Said> said_;
  logs::Templates kinds_;
};

// Takes what a run shows out of it, and lets go of the rest: only the run that is told keeps its trace.
void take_run(replay::Run&& run, replay::ContrastRun what, RunLogs& logs, explain::Input& input, bool& told) {
  using replay::ContrastRun;
  using schedule::Verdict;
  RunLogs::Said said = logs.take(run.result.number);
  if (said.cut)
    input.limits.push_back(fmt::format("run {}: of its logs only the first {} messages were compared", run.result.number, kMostLines));
  explain::Group group = explain::Group::near;
  if (what == ContrastRun::sound) {
    if (run.result.oracle != schedule::OracleAnswer::miss) return;
    group = explain::Group::sound;
  } else if (run.result.verdict == Verdict::reproduced) {
    if (what == ContrastRun::beside) return;  // another schedule that shows the bug: neither
    group = explain::Group::failing;
  } else if (run.result.verdict != Verdict::not_reproduced) {
    return;
  }
  input.runs.push_back(explain::condense(run.result, said.lines, group, input.kinds));
  if (told || group != explain::Group::failing) return;
  told = true;
  input.story_run = input.runs.size() - 1;
  input.oracle_said = std::move(said.oracle);
  input.run_dir = std::move(said.run_dir);
  input.lines = std::move(said.lines);
  input.story = std::move(run.result);
}

// What of the values was not recorded.
void tell_busy(const replay::Run& run, const replay::Asked& asked, explain::Input& input) {
  for (std::size_t i = 0; i < run.seen.places.size(); ++i) {
    if (!run.seen.places[i].let_go) continue;
    for (const replay::Asked::Meaning& meaning : asked.meanings[i])
      input.limits.push_back(fmt::format("values of '{}' are not all recorded: its place in the code is come by too often to be watched all the time",
                                         asked.questions[meaning.question].text));
  }
  if (run.seen.left_out > 0)
    input.limits.push_back(fmt::format("of values that came very often, those of each node's first and last {} are compared", observe::kMostValues / 2));
}

void tell_contrast(const replay::Contrast& made, explain::Input& input) {
  for (const std::string& one : made.besides_that_hit) input.limits.push_back(fmt::format("the bug shows, too, with {}", one));
  if (made.sound_hits > 0) input.limits.push_back(fmt::format("in {} runs without faults the bug showed all the same", made.sound_hits));
  if (made.besides == 0) input.limits.emplace_back("no run was made in which the schedule's faults fire a little earlier or later: it names no step that could be another");
}

// Without a failing run, or without anything to hold it against.
explain::Explanation unexplained(const replay::Contrast& made) {
  explain::Explanation out;
  if (made.reproduced == 0 && made.missed > 0) {
    out.verdict = explain::Verdict::not_reproduced;
    out.reason = fmt::format("the bug did not show in {} runs of the schedule; without it there is nothing to explain", made.missed + made.inconclusive);
  } else if (made.reproduced == 0) {
    out.reason = fmt::format("none of {} runs of the schedule could be judged: {}", made.inconclusive, made.last_reason);
  } else if (made.sound_hits > 0) {
    out.reason = fmt::format("the bug shows without faults, too: in {} of {} runs", made.sound_hits, made.sound_hits + made.sound_unknown);
  } else {
    out.reason = fmt::format("no run without faults could be judged: {}", made.last_reason);
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

std::string_view words_of(replay::ContrastRun what) { return what == replay::ContrastRun::sound ? "without faults" : "the schedule"; }

Result<int> run_explain(const ExplainOptions& options, const Common& common) {
  const std::int64_t began = monotonic_ns();
  report::ExplanationReport report;
  ROSE_TRY(const config::Config config, config::read_config(options.config));
  ROSE_TRY(report.schedule, schedule::read_schedule(options.schedule));
  ROSE_CHECK(schedule::check_nodes(report.schedule, config.node_names(), options.schedule));
  ROSE_CHECK(replay::need_workload_and_oracle(config));
  ROSE_CHECK(inject::check(report.schedule, config, options.allow_attached));
  if (report.schedule.faults.empty()) return fail(ErrorKind::input, fmt::format("{}: it has no fault to explain", options.schedule));
  const int jobs = options.jobs.value_or(config.diagnose.jobs);
  ROSE_CHECK(replay::check_jobs(config, jobs));
  ROSE_TRY(const replay::Asked asked, replay::ask(config, options.ask));
  ROSE_CHECK(need_root("explain"));
  ROSE_CHECK(need_process_ids("explain"));
  ROSE_CHECK(check_output("-o", options.out));
  ROSE_TRY(const replay::Watchable watchable, replay::watchable_functions(config));
  ROSE_CHECK(cancel::install());
  export_own_name();

  std::optional<std::filesystem::path> folder;
  if (!options.report.empty()) folder = options.report;
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(folder, options.keep));
  ROSE_CHECK(store.start_over(config));
  RunLogs logs(config);
  replay::ContrastOptions contrast_options;
  contrast_options.wanted = options.runs.value_or(kWantedRuns);
  contrast_options.jobs = jobs;
  replay::RunOptions& run_options = contrast_options.run;
  run_options.tracer = replay::tracer_options(config);
  run_options.tracer.function_share = kFunctionShare;
  run_options.profile = &watchable.functions;
  run_options.allow_attached = options.allow_attached;
  run_options.stacks = true;
  run_options.asked = asked.places.empty() ? nullptr : &asked;
  run_options.tracer_ready = [&](observe::Tracer&, const std::filesystem::path& run_dir) { logs.began(run_dir); };
  run_options.look = [&](const std::filesystem::path& run_dir, schedule::RunResult& result) { logs.ended(run_dir, result.number); };

  log::info("{} functions are watched; up to {} runs of the schedule, {} without faults", watchable.functions.functions.size(),
            contrast_options.most_tries(), contrast_options.most_sound());
  explain::Input input;
  input.schedule = report.schedule;
  input.unseen = watchable.unseen;
  for (const replay::Asked::Question& one : asked.questions) input.questions.push_back({one.text, one.function, one.type, one.refused, one.remarks});
  bool told = false;
  int shown = 0;
  const auto each = [&](replay::Run&& run, replay::ContrastRun what, const std::string& words) {
    shown += run.result.verdict == schedule::Verdict::reproduced && what == replay::ContrastRun::schedule ? 1 : 0;
    const bool sound = what == replay::ContrastRun::sound;
    const std::string_view verdict = sound ? (run.result.oracle == schedule::OracleAnswer::miss ? "sound" : "not sound") : schedule::verdict_name(run.result.verdict);
    log::progress(fmt::format("explain: run {} ({}): {}; {} of {} failing runs", run.result.number,
                              what == replay::ContrastRun::beside ? std::string_view(words) : words_of(what), verdict, shown, contrast_options.wanted));
    tell_busy(run, asked, input);
    take_run(std::move(run), what, logs, input, told);
  };
  ROSE_TRY(const replay::Contrast made, replay::contrast(watchable.config, report.schedule, contrast_options, store, each));
  log::end_progress();
  ROSE_CHECK(cancel::check());

  const bool can_compare = told && std::any_of(input.runs.begin(), input.runs.end(), [](const explain::Run& run) { return run.group == explain::Group::sound; });
  if (can_compare) {
    tell_contrast(made, input);
    input.message = [&](std::uint32_t kind) { return logs.words(kind); };
    input.place = [&](const std::string& node, const std::string& function) {
      const auto file = watchable.files.find({node, function});
      return file == watchable.files.end() ? explain::Place{} : explain::Place{file->second, 0};
    };
    report.explanation = explain::explain(input);
    report.story = std::move(input.story);
  } else {
    report.explanation = unexplained(made);
    report.explanation.limits = watchable.unseen;
  }
  report.name = config.name;
  report.schedule_path = options.schedule;
  report.config_path = options.config;
  report.written = options.out;
  report.runs = made.runs;
  report.reproduced = made.reproduced;
  report.missed = made.missed;
  report.inconclusive = made.inconclusive;
  report.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  ROSE_CHECK(write_file(options.out, report::explanation_markdown(report)));
  if (folder) {
    ROSE_CHECK(write_file(*folder / "explanation.md", report::explanation_markdown(report)));
    ROSE_CHECK(write_file(*folder / "explanation.json", report::explanation_json(report)));
    report::PageContext context = page_context(config.node_names());
    context.environment.emplace_back("Schedule", options.schedule);
    add_deployment(context, config, options.config);
    ROSE_CHECK(write_file(*folder / "report.html", report::explanation_html(report, context)));
    log::info("report: {}", (*folder / "report.html").string());
  }
  print(common.json ? report::explanation_json(report) : report::explanation_text(report));
  return exit_code_of(report.explanation.verdict);
}

}  // namespace

Command explain_command() {
  auto options = std::make_shared<ExplainOptions>();
  return {
      .name = "explain",
      .summary = "Tell what the program made of a schedule's faults, and which functions to look at",
      .description =
          "It runs a schedule that reproduces, by turns with runs without faults, and with runs in which each fault fires one call earlier or later, or at "
          "no step in particular. "
          "It compares what the nodes do from the first fault on: functions entered or no longer entered, failed and state-changing calls, log "
          "messages, ends of processes, silences. What differs between equal runs is noise, and does not count.\n\n"
          "It tells the suspects, best first, and the story from the fault to the symptom. When failing and sound runs differ in nothing "
          "beyond noise, it says so.\n\n"
          "Functions are those that `functions` and `sources` of the configuration name; where it names none, all of the node's own program that "
          "its debug information knows. The exit code is 0 when something was told, 1 when the bug did not show, 4 when nothing was found or "
          "it could not tell.",
      .examples = {"rose explain schedule.toml -c rose.toml", "rose explain schedule.toml -c rose.toml --runs 8 --jobs 2 --report why",
                   "rose explain schedule.toml -c rose.toml --ask 'store(length)' 'write_epoch:return' 'store.c:71:end'"},
      .options =
          {
              {.names = "schedule", .slot = &options->schedule, .value = "SCHEDULE", .help = "A schedule that reproduces the bug", .required = true,
               .completes = Completes::file},
              {.names = "-c,--config", .slot = &options->config, .value = "FILE", .help = "The deployment", .completes = Completes::file},
              {.names = "-o,--output", .slot = &options->out, .value = "FILE", .help = "Where the explanation is written", .completes = Completes::file},
              {.names = "--runs", .slot = &options->runs, .value = "N",
               .help = "How many runs that reproduce, and as many without faults; of the schedule at most twice as many and two are made",
               .otherwise = std::to_string(kWantedRuns), .range = {{2, 100}}},
              {.names = "--jobs", .slot = &options->jobs, .value = "N", .help = "Runs side by side", .otherwise = "jobs of the configuration",
               .range = {{1, 64}}},
              {.names = "--ask", .slot = &options->ask, .value = "QUERY",
               .help = "Also record this value in all runs, and tell how failing and sound ones differ in it: " + std::string(symbols::kQueryForms) +
                       ". Types, names and members need debug information (-g); without any, f(arg1) and f:return are raw integers"},
              {.names = "--report", .slot = &options->report, .value = "DIR",
               .help = "Write the record of all runs, their traces, the explanation and report.html to this folder", .completes = Completes::folder},
              {.names = "--keep", .slot = &options->keep, .help = "Keep all run directories"},
              {.names = "--allow-attached", .slot = &options->allow_attached,
               .help = "Allow faults on nodes that rose did not start; they may be production"},
          },
      .files = {{"DIR/report.html", "Of --report: suspects, and the story on the time line of a run. One file that fetches nothing."}},
      .run = [options](const Common& common) { return run_explain(*options, common); },
  };
}

}  // namespace rose::cli
