#include "cli/explain_runs.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/text.h"
#include "explain/stack_traces/stack_traces.h"
#include "explain/stacks_before.h"
#include "jvm/node.h"
#include "kernel/attach.h"
#include "logs/meaning.h"
#include "logs/reader.h"
#include "replay/alone.h"
#include "replay/log_times.h"
#include "replay/run_logs.h"

namespace rose::cli {
namespace {

constexpr std::size_t kMostLines = 100'000;  // log lines per run
constexpr std::size_t kMostLineBytes = 400;
// if noise prevents a result: the number of further runs of each side, and how often they are added
constexpr int kAgain = 2, kMostAgain = 2;
constexpr int kMostCallerRuns = 3;
// share of a processor for watching functions; larger than usual, because functions that are not watched cannot be
// explained
constexpr double kFunctionShare = 0.05;

// Reports which values were not recorded completely.
void add_value_limits(const replay::Run& run, const replay::ValueQueries& asked, explain::Input& input) {
  for (std::size_t i = 0; i < run.seen.places.size(); ++i) {
    if (!run.seen.places[i].detached) continue;
    for (const replay::ValueQueries::Meaning& meaning : asked.meanings[i])
      input.limits.push_back(
          fmt::format("values of '{}' are not all recorded: its location in the code is reached too often to be "
                      "watched all the time",
                      asked.questions[meaning.question].text));
  }
  if (run.seen.left_out > 0)
    input.limits.push_back(
        fmt::format("of values that were recorded very often, only each node's first and last {} are compared",
                    observe::kMostValues / 2));
}

// Reports that a run's record has gaps.
void add_lost_limit(const schedule::RunResult& result, explain::Input& input) {
  if (result.trace.meta.lost == 0) return;
  input.limits.push_back(
      fmt::format("run {}: {} events were not recorded, because more happened than could be read in time; they count "
                  "as absent",
                  result.number, result.trace.meta.lost));
}

// Takes the reports of JVMs on the queries: where each value is read and its type, or why it is refused.
void take_answers(const replay::Run& run, Compared& into) {
  for (const replay::JavaAnswer& answer : run.java) {
    if (answer.question >= into.questions.size()) continue;
    explain::Question& question = into.input.questions[into.questions[answer.question]];
    if (answer.why.empty() && question.type.empty()) question.function = answer.function, question.type = answer.type;
    else if (!answer.why.empty()) into.refusals.push_back(answer);
  }
}

// Appends to `into.questions` the position of each asked query in `into.input.questions`. If a query is new, adds it to
// `into.input.questions`, and marks in the earlier runs that they did not record its values. Returns the positions of
// the queries that the new runs do not record.
std::set<std::uint32_t> add_questions(const replay::ValueQueries& asked, Compared& into) {
  std::vector<explain::Question>& all = into.input.questions;
  std::set<std::uint32_t> unasked;
  for (std::uint32_t i = 0; i < all.size(); ++i) unasked.insert(i);
  for (const replay::ValueQueries::Question& one : asked.questions) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const auto& other) { return other.text == one.text; });
    const auto number = static_cast<std::uint32_t>(known - all.begin());
    into.questions.push_back(number);
    unasked.erase(number);
    if (known != all.end()) continue;
    all.push_back({one.text, one.function, one.type, one.refused, one.remarks});
    for (explain::Run& run : into.input.runs) run.unasked.insert(number);
  }
  return unasked;
}

// The messages with which programs crash ("panic: ...", "Exception in thread ...") have no level, so they count as
// errors.
logs::Level how_loud(const logs::Message& message, std::string_view text) {
  if (message.level != logs::Level::none) return message.level;
  const logs::Meaning meaning = logs::read_meaning(text);
  return meaning.panic || meaning.traceback ? logs::Level::error : logs::Level::none;
}

void add_contrast_limits(const replay::Contrast& made, explain::Input& input) {
  for (const std::string& one : made.besides_that_hit)
    input.limits.push_back(fmt::format("the bug also occurs {}{}", one.starts_with("without ") ? "" : "with ", one));
  if (made.sound_hits > 0)
    input.limits.push_back(fmt::format("in {} runs without faults the bug occurred as well", made.sound_hits));
  if (made.besides == 0)
    input.limits.emplace_back(
        "no run was made in which the schedule's faults fire a little earlier or later: they have no call to vary");
}

}  // namespace

// Reads the logs, recordings and other files in the runs' folders. Thread-safe, because runs may be parallel.
class ComparedRuns::RunLogs {
 public:
  explicit RunLogs(const config::Config& config) : config_(config) {}

  struct Files {
    std::vector<explain::LogLine> lines;
    std::string oracle, run_dir;
    bool cut = false;
    std::vector<explain::RecordedMessage> recorded;
    std::set<std::string> recorded_late;
    std::vector<std::string> limits;  // which values of recordings are not compared
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
    Files files;
    const auto times = times_.find(run_dir);
    if (times != times_.end()) {
      times->second.stop();
      read(run_dir, times->second, files);
      times_.erase(times);
    }
    files.run_dir = run_dir.string();
    files.oracle = last_line(run_dir, "oracle.log");
    read_recordings(run_dir, files);
    files_[number] = std::move(files);
  }

  [[nodiscard]] Files take(int number) {
    const std::lock_guard lock(mutex_);
    auto node = files_.extract(number);
    return node ? std::move(node.mapped()) : Files{};
  }

  [[nodiscard]] std::string words(std::uint32_t kind) const { return kinds_.text(kind); }

 private:
  static std::string last_line(const std::filesystem::path& folder, const std::string& file) {
    const Result<std::string> text = read_inside(folder, file, std::size_t{1} << 20);
    if (!text) return {};
    const std::vector<std::string> lines = split(*text, '\n');
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      if (!line->empty()) return line->substr(0, kMostLineBytes);
    return {};
  }

  void read(const std::filesystem::path& run_dir, const replay::LogTimes& times, Files& files) {
    for (const replay::NodeLogFile& file : replay::run_logs(config_, run_dir)) {
      const std::vector<std::int64_t> written = times.times(file.path);
      if (written.empty()) continue;
      const logs::Input input{file.path, file.node, file.folder};
      const Result<logs::Logs> read = logs::read_logs({&input, 1}, {}, kinds_);
      if (!read) continue;
      for (const logs::NodeLog& of_node : read->nodes) {
        for (const logs::Message& message : of_node.messages) {
          if (message.line == 0 || message.line > written.size()) continue;
          if (files.lines.size() == kMostLines) {
            files.cut = true;
            return;
          }
          const std::string_view text = read->text(message);
          files.lines.push_back({written[message.line - 1], file.node, message.kind, how_loud(message, text),
                                 std::string(text.substr(0, kMostLineBytes)),
                                 fmt::format("{}/{}:{}", file.node, file.path.filename().string(), message.line),
                                 explain::read_stack_trace(text)});
        }
      }
    }
  }

  std::string_view kept(std::string text) { return *words_.insert(std::move(text)).first; }

  void read_recordings(const std::filesystem::path& run_dir, Files& files) {
    std::map<std::string, std::size_t> taken;  // by node
    for (const std::filesystem::path& path : replay::recordings_of(config_, run_dir)) {
      const std::string node = path.parent_path().filename(), file = node + "/" + path.filename().string();
      std::size_t& count = taken[node];
      const bool first_life = count == 0;
      const auto take = [&](const replay::RecordedValue& value) {
        if (count == explain::kMostRecorded) {
          files.limits.push_back(fmt::format("of what {} recorded, only the first {} messages were compared", node,
                                             explain::kMostRecorded));
          return false;
        }
        ++count;
        files.recorded.push_back({value.ts_ns, kept(node), kept(printable(value.key)),
                                  kept(explain::recorded_words(value.data)), value.record, kept(file)});
        return true;
      };
      const Result<bool> overwritten = replay::each_value(path, take, path.parent_path());
      if (!overwritten) files.limits.push_back(overwritten.error().message);
      else if (*overwritten && first_life) files.recorded_late.insert(node);
    }
  }

  const config::Config& config_;
  std::mutex mutex_;
  std::map<std::filesystem::path, replay::LogTimes> times_;
  std::map<int, Files> files_;
  logs::Templates kinds_;
  std::set<std::string> words_;  // texts of recorded messages
};

// Extracts the evidence of a run and frees the rest; only the run that is shown keeps its trace.
void ComparedRuns::take_run(replay::Run&& run, replay::ContrastRun what, RunLogs& logs, Compared& out,
                            bool& story_taken) {
  explain::Input& input = out.input;
  using replay::ContrastRun;
  using schedule::Verdict;
  RunLogs::Files files = logs.take(run.result.number);
  if (files.cut)
    input.limits.push_back(
        fmt::format("run {}: only the first {} messages of its logs were compared", run.result.number, kMostLines));
  explain::Group group = explain::Group::near;
  if (what == ContrastRun::sound) {
    if (run.result.oracle != schedule::OracleAnswer::miss) return;
    group = explain::Group::sound;
  } else if (run.result.verdict == Verdict::reproduced) {
    // a run of another schedule that reproduces the bug belongs to neither side
    if (what == ContrastRun::beside) return;
    group = what == ContrastRun::shorter ? explain::Group::shorter : explain::Group::failing;
  } else if (run.result.verdict != Verdict::not_reproduced) {
    return;
  }
  for (schedule::Value& value : run.result.values) value.question = out.questions.at(value.question);
  input.runs.push_back(explain::condense(run.result, files.lines, group, input.kinds));
  input.runs.back().unasked = out.unasked;
  input.runs.back().recorded = std::move(files.recorded);
  input.runs.back().recorded_late = std::move(files.recorded_late);
  for (std::string& limit : files.limits)
    if (std::find(input.limits.begin(), input.limits.end(), limit) == input.limits.end())
      input.limits.push_back(std::move(limit));
  if (story_taken || group != explain::Group::failing) return;
  story_taken = true;
  input.story_run = input.runs.size() - 1;
  input.oracle_output = std::move(files.oracle);
  input.run_dir = std::move(files.run_dir);
  input.lines = std::move(files.lines);
  input.story = std::move(run.result);
}

ComparedRuns::ComparedRuns(const config::Config& config, const replay::Watchable& watchable,
                           const schedule::Schedule& schedule, replay::ContrastOptions options, replay::RunStore& store)
    : watchable_(watchable),
      schedule_(schedule),
      options_(std::move(options)),
      store_(store),
      logs_(std::make_unique<RunLogs>(config)) {
  replay::RunOptions& run = options_.run;
  run.tracer = replay::tracer_options(config);
  run.tracer.function_share = kFunctionShare;
  run.tracer.messages = true;
  run.tracer.reads = true;
  run.tracer.inlined = true;
  run.profile = &watchable.functions;
  run.stacks = true;
  run.traced_answer_ns = 0;
  run.tracer_ready = [this](observe::Tracer&, const std::filesystem::path& run_dir) { logs_->began(run_dir); };
  run.look = [this](const std::filesystem::path& run_dir, schedule::RunResult& result) {
    logs_->ended(run_dir, result.number);
  };
}
ComparedRuns::~ComparedRuns() = default;

Result<void> ComparedRuns::add(const replay::ValueQueries& asked, const replay::ContrastOptions& options,
                               bool& story_taken, Compared& out) {
  int reproduced = out.made.reproduced;
  const int wanted = reproduced + options.wanted;
  const auto each = [&](replay::Run&& run, replay::ContrastRun what, const std::string& words) {
    python_places_.merge(run.python_places);
    reproduced += run.result.verdict == schedule::Verdict::reproduced && what == replay::ContrastRun::schedule ? 1 : 0;
    const bool sound = what == replay::ContrastRun::sound;
    const std::string_view verdict =
        sound ? (run.result.oracle == schedule::OracleAnswer::miss ? "correct" : "not correct")
              : schedule::verdict_name(run.result.verdict);
    log::progress(fmt::format("explain: run {} ({}): {}; {} of {} failing runs", run.result.number, words, verdict,
                              reproduced, wanted));
    out.run_seconds += run.result.seconds;
    for (const observe::SeenValues::Place& place : run.seen.places)
      out.value_seconds += static_cast<double>(place.visits) * kernel::uprobe_seconds();
    add_value_limits(run, asked, out.input);
    add_lost_limit(run.result, out.input);
    take_answers(run, out);
    take_run(std::move(run), what, *logs_, out, story_taken);
  };
  ROSE_TRY(const replay::Contrast made, replay::contrast(watchable_.config, schedule_, options, store_, each));
  log::end_progress();
  ROSE_CHECK(cancel::check());
  made_ += made.runs;
  out.made.add(made);
  return {};
}

Result<Compared> ComparedRuns::make(const replay::ValueQueries& asked, std::size_t besides, explain::Input before) {
  const std::int64_t began = monotonic_ns();
  replay::ContrastOptions options = options_;
  options.besides = besides;
  options.run.number = made_ + 1;
  options.run.asked = asked.places.empty() ? nullptr : &asked;
  Compared out;
  out.input = std::move(before);
  out.input.schedule = schedule_;
  out.input.unseen = watchable_.unseen;
  out.unasked = add_questions(asked, out);
  bool story_taken = false;
  ROSE_CHECK(add(asked, options, story_taken, out));
  const auto comparable = [&] {
    return story_taken && std::any_of(out.input.runs.begin(), out.input.runs.end(),
                                      [](const explain::Run& run) { return run.group == explain::Group::sound; });
  };
  for (int again = 0; again < kMostAgain && may_add_ && comparable() && explain::needs_more_runs(out.input); ++again) {
    log::info("the differences may be noise: {} more runs of each side", kAgain);
    options.wanted = kAgain;
    options.besides = 0;
    options.run.number = made_ + 1;
    ROSE_CHECK(add(asked, options, story_taken, out));
  }
  for (const replay::ValueQueries::OfJava& one : asked.java)
    if (explain::Question& question = out.input.questions[out.questions[one.question]]; question.type.empty())
      question.refused = replay::unanswered(asked, one.question, out.refusals);
  out.comparable = comparable();
  out.input.message = [this](std::uint32_t kind) { return logs_->words(kind); };
  out.input.place = [this](const std::string& node, const std::string& function) {
    const auto file = watchable_.files.find({node, function});
    if (file != watchable_.files.end()) return explain::Place{file->second, 0};
    const auto python = python_places_.find({node, function});
    return python == python_places_.end() ? explain::Place{}
                                          : explain::Place{python->second.first, python->second.second};
  };
  if (out.comparable) add_contrast_limits(out.made, out.input);
  if (out.comparable) ROSE_CHECK(complete_java_stacks(out.input));
  out.seconds = static_cast<double>(monotonic_ns() - began) / 1e9;
  return out;
}

Result<void> ComparedRuns::complete_java_stacks(explain::Input& input) {
  const auto is_java = [this](const std::string& name) {
    const auto& nodes = watchable_.config.nodes;
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const config::Node& node) { return node.name == name && jvm::runs_java(node); });
  };
  const std::optional<schedule::Schedule> before = explain::before_calls(schedule_, input.runs, is_java);
  if (!before) return {};
  if (!before_calls_) {
    before_calls_.emplace();
    config::Config config = watchable_.config;
    // use this backend, because the override backend kills a process before its values can be read
    config.inject.syscall = config::Backend::seccomp;
    replay::RunOptions options = options_.run;
    options.number = made_ + 1;
    Result<replay::Run> run = replay::run_in(store_, config, *before, options);
    ROSE_CHECK(cancel::check());
    if (!run) {
      log::info("Java frames of calls that return are not known: {}", run.error().message);
      return {};
    }
    ++made_;
    (void)logs_->take(run->result.number);
    log::info("run {}: the faults came just before the calls, to record Java frames", run->result.number);
    *before_calls_ = std::move(run->result.faults);
  }
  for (explain::Run& run : input.runs) explain::complete_stacks(*before_calls_, run.faults);
  explain::complete_stacks(*before_calls_, input.story.faults);
  return {};
}

Result<std::vector<explain::Call>> ComparedRuns::callers(const replay::ValueQueries& asked) {
  return record_callers(asked, schedule_, schedule::Verdict::reproduced, {});
}

Result<std::vector<explain::Call>> ComparedRuns::callers_without_faults(const replay::ValueQueries& asked,
                                                                        std::int64_t since_ns) {
  schedule::Schedule none = schedule_;
  none.faults.clear();
  return record_callers(asked, none, schedule::Verdict::not_reproduced, since_ns);
}

Result<std::vector<explain::Call>> ComparedRuns::record_callers(const replay::ValueQueries& asked,
                                                                const schedule::Schedule& schedule,
                                                                schedule::Verdict wanted,
                                                                std::optional<std::int64_t> since_ns) {
  std::vector<explain::Call> calls;
  replay::RunOptions options = options_.run;
  options.asked = &asked;
  for (int tried = 0; tried < kMostCallerRuns; ++tried) {
    options.number = made_ + 1;
    ROSE_TRY(const replay::Run run, replay::run_in(store_, watchable_.config, schedule, options));
    ++made_;
    (void)logs_->take(run.result.number);
    log::progress(fmt::format("explain: run {} (callers of {}): {}", run.result.number,
                              schedule.faults.empty() ? "functions that failing runs lack" : "the suspects",
                              schedule::verdict_name(run.result.verdict)));
    ROSE_CHECK(cancel::check());
    const std::optional<std::int64_t> since = since_ns ? since_ns : explain::first_fault_ns(run.result);
    if (run.result.verdict != wanted || !since) continue;
    std::vector<std::string> queries;
    for (const replay::ValueQueries::Question& question : asked.questions) queries.push_back(question.text);
    calls = explain::calls_of(run.result, queries, *since);
    break;
  }
  log::end_progress();
  return calls;
}

}  // namespace rose::cli
