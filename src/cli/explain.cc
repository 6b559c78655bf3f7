// rose explain: from a schedule that reproduces to the code that mishandled its faults.
#include "explain/explain.h"

#include <algorithm>
#include <set>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/explain_runs.h"
#include "cli/page.h"
#include "deploy/image_files.h"
#include "inject/injector.h"
#include "replay/launched.h"
#include "report/explanation.h"

namespace rose::cli {
namespace {

constexpr int kWantedRuns = 5;
constexpr std::size_t kMostRounds = 4;      // of questions that are asked unasked
constexpr std::size_t kRoundFunctions = 6;  // that one round asks about
constexpr std::size_t kRoundQuestions = 40;
constexpr std::size_t kMostKept = 20;  // questions that told something, asked again in every further round
constexpr std::size_t kRoundBesides = 2;
constexpr std::size_t kMostCallersAsked = 48;  // functions whose callers are asked for

struct ExplainOptions {
  std::string schedule;
  std::string config = "rose.toml";
  std::string out = "explanation.md";
  std::optional<int> runs;
  std::optional<int> jobs;
  std::string report;
  std::vector<std::string> ask;
  bool deepen = false;
  bool keep = false;
  bool allow_attached = false;
};

// Without a failing run, or without anything to hold it against.
explain::Explanation unexplained(const replay::Contrast& made) {
  explain::Explanation out;
  if (made.reproduced == 0 && made.missed > 0) {
    out.verdict = explain::Verdict::not_reproduced;
    out.reason = fmt::format("the bug did not show in {} runs of the schedule; without it there is nothing to explain",
                             made.missed + made.inconclusive);
  } else if (made.reproduced == 0) {
    out.reason =
        fmt::format("none of {} runs of the schedule could be judged: {}", made.inconclusive, made.last_reason);
  } else if (made.sound_hits > 0) {
    out.reason = fmt::format("the bug shows without faults, too: in {} of {} runs", made.sound_hits,
                             made.sound_hits + made.sound_unknown);
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

// Questions to ask again: those of the user, and those that told failing from sound runs, best first.
std::vector<std::string> kept_questions(const std::vector<std::string>& own, const explain::Explanation& explanation) {
  std::vector<std::string> kept = own;
  std::vector<const explain::ValueTable*> tables;
  for (const explain::ValueTable& table : explanation.values)
    if (table.score > 0) tables.push_back(&table);
  std::stable_sort(tables.begin(), tables.end(), [](const auto* a, const auto* b) { return a->score > b->score; });
  for (const explain::ValueTable* table : tables)
    if (kept.size() < own.size() + kMostKept && std::find(kept.begin(), kept.end(), table->query) == kept.end())
      kept.push_back(table->query);
  return kept;
}

std::set<std::string> differing(const explain::Explanation& explanation) {
  std::set<std::string> out;
  for (const explain::ValueTable& table : explanation.values)
    if (table.score > 0) out.insert(table.query);
  return out;
}

// Round after round: asks about the functions on the way from the fault to the symptom, keeps what differs, goes on
// from there. The last round in which runs could be compared is the one that is told: it asked all that is kept.
Result<void> deepen(const config::Config& config, const std::vector<std::string>& own, ComparedRuns& runs,
                    report::ExplanationReport& report) {
  replay::Askable askable(config);
  std::set<std::string> asked_about, known = differing(report.explanation);
  std::vector<explain::Round> rounds;
  std::string ended = fmt::format("--deepen ended after {} rounds: there may be more to ask", kMostRounds);
  const auto note = [&](std::string why) { ended = std::move(why); };
  while (rounds.size() < kMostRounds) {
    explain::Round round;
    std::vector<std::string> questions = kept_questions(own, report.explanation);
    const std::size_t kept = questions.size();
    for (const std::string& function : explain::next_functions(report.explanation, asked_about, SIZE_MAX)) {
      if (round.functions.size() == kRoundFunctions || questions.size() >= kept + kRoundQuestions) break;
      asked_about.insert(function);
      const std::vector<std::string> about = askable.about(function);
      if (about.empty()) continue;
      round.functions.push_back(function);
      for (const std::string& question : about)
        if (questions.size() < kept + kRoundQuestions &&
            std::find(questions.begin(), questions.end(), question) == questions.end())
          questions.push_back(question);
    }
    if (round.functions.empty()) {
      note(rounds.empty() ? "--deepen asked nothing: no native program and no JVM has the functions on the way from "
                            "the fault to the symptom"
                          : "");
      break;
    }
    Result<replay::Asked> asked = replay::ask(config, questions);
    if (!asked) {
      note(fmt::format("--deepen ended: {}", asked.error().message));
      break;
    }
    // What can't be seen wasn't asked.
    round.asked = static_cast<std::size_t>(std::count_if(asked->questions.begin(), asked->questions.end(),
                                                         [](const auto& one) { return one.refused.empty(); })) -
                  std::min(kept, asked->questions.size());
    log::info("round {}: {} questions about {} functions, first {}", rounds.size() + 1, round.asked,
              round.functions.size(), round.functions.front());
    ROSE_TRY(Compared compared, runs.make(*asked, kRoundBesides));
    round.runs = compared.made.runs;
    round.seconds = compared.seconds;
    round.share = compared.run_seconds > 0 ? compared.value_seconds / compared.run_seconds : 0;
    if (!compared.comparable) {
      rounds.push_back(round);
      note(
          fmt::format("--deepen ended: with values being read the runs of round {} could not be compared; of the "
                      "schedule {} reproduced",
                      rounds.size(), compared.made.reproduced));
      break;
    }
    explain::Explanation explanation = explain::explain(compared.input);
    std::size_t fresh = 0;
    for (const std::string& query : differing(explanation)) fresh += known.insert(query).second ? 1 : 0;
    round.differing = fresh;
    rounds.push_back(round);
    if (explanation.verdict == explain::Verdict::explained) {
      report.explanation = std::move(explanation);
      report.story = std::move(compared.input.story);
    }
    // As long as no value at all told the sides apart there is nothing to go on from but the way from the fault to the
    // symptom.
    if (fresh == 0 && !known.empty()) {
      note("");
      break;
    }
  }
  // What told nothing is left out; what the user asked for stays.
  std::erase_if(report.explanation.values, [&](const explain::ValueTable& table) {
    return table.score <= 0 && std::find(own.begin(), own.end(), table.query) == own.end();
  });
  if (!ended.empty()) report.explanation.limits.push_back(ended);
  report.explanation.rounds = std::move(rounds);
  return {};
}

// Who calls these, from the fault on, in one run more. Of those that can't be asked about, nothing.
Result<std::vector<explain::Call>> callers_of(const std::vector<std::string>& functions, const config::Config& config,
                                              ComparedRuns& runs, explain::Explanation& explanation) {
  std::vector<std::string> questions;
  replay::Askable askable(config);
  for (const std::string& function : functions) {
    const std::string question = function + ":callers";
    const std::vector<std::string> about = askable.about(function);
    if (std::find(about.begin(), about.end(), question) != about.end()) questions.push_back(question);
  }
  if (questions.empty()) return std::vector<explain::Call>();
  const Result<replay::Asked> asked = replay::ask(config, questions);
  if (!asked) {
    explanation.limits.push_back(asked.error().message);
    return std::vector<explain::Call>();
  }
  ROSE_TRY(std::vector<explain::Call> calls, runs.callers(*asked));
  if (calls.empty())
    explanation.limits.push_back(
        "who calls the suspects is not known: no run in which that was asked showed the bug and a call");
  return calls;
}

// One run more, which tells who calls what only failing runs enter; and one that tells who calls where a wrong clock
// was decided with.
Result<void> ask_callers(const config::Config& config, ComparedRuns& runs, const schedule::Schedule& schedule,
                         explain::Explanation& explanation) {
  ROSE_TRY(std::vector<explain::Call> calls,
           callers_of(explain::fresh_functions(explanation, kMostCallersAsked), config, runs, explanation));
  const std::vector<std::string> outer =
      explain::decided_by_clock(schedule, explain::add_callers(explanation, std::move(calls)));
  if (outer.empty()) return {};
  ROSE_TRY(calls, callers_of(outer, config, runs, explanation));
  explain::add_outer_callers(explanation, outer, std::move(calls));
  return {};
}

Result<int> run_explain(const ExplainOptions& options, const Common& common) {
  const std::int64_t began = monotonic_ns();
  report::ExplanationReport report;
  ROSE_TRY(config::Config config, config::read_config(options.config));
  ROSE_TRY(const auto image_files, deploy::take_programs_out(config));
  ROSE_TRY(report.schedule, schedule::read_schedule(options.schedule));
  ROSE_CHECK(schedule::check_nodes(report.schedule, config.node_names(), options.schedule));
  ROSE_CHECK(replay::need_workload_and_oracle(config));
  ROSE_CHECK(inject::check(report.schedule, config, options.allow_attached));
  if (report.schedule.faults.empty())
    return fail(ErrorKind::input, fmt::format("{}: it has no fault to explain", options.schedule));
  const int jobs = options.jobs.value_or(config.diagnose.jobs);
  ROSE_CHECK(replay::check_jobs(config, jobs));
  // What a launcher's program has is known once it was launched.
  if (std::none_of(config.nodes.begin(), config.nodes.end(), replay::shows_no_function))
    ROSE_CHECK(replay::ask(config, options.ask));
  ROSE_CHECK(need_root("explain"));
  ROSE_CHECK(need_process_ids("explain"));
  ROSE_CHECK(check_output("-o", options.out));
  ROSE_CHECK(cancel::install());
  export_own_name();

  std::optional<std::filesystem::path> folder;
  if (!options.report.empty()) folder = options.report;
  ROSE_TRY(replay::RunStore store, replay::RunStore::open(folder, options.keep));
  ROSE_CHECK(store.start_over(config));
  ROSE_TRY(config, replay::follow_launchers(config, store, options.allow_attached));
  ROSE_TRY(const replay::Asked asked, replay::ask(config, options.ask));
  ROSE_TRY(const replay::Watchable watchable, replay::watchable_functions(config));
  replay::ContrastOptions contrast_options;
  ROSE_TRY(contrast_options.run.usual_work, replay::usual_work(config, ""));
  contrast_options.wanted = options.runs.value_or(kWantedRuns);
  contrast_options.jobs = jobs;
  contrast_options.run.allow_attached = options.allow_attached;
  log::info("{} functions are watched; up to {} runs of the schedule, {} without faults",
            watchable.functions.functions.size(), contrast_options.most_tries(), contrast_options.most_sound());
  ComparedRuns runs(config, watchable, report.schedule, contrast_options, store);
  runs.may_add(!options.runs);
  ROSE_TRY(Compared compared, runs.make(asked, contrast_options.besides));
  const replay::Contrast made = compared.made;
  if (compared.comparable) {
    report.explanation = explain::explain(compared.input);
    report.story = std::move(compared.input.story);
    if (options.deepen) ROSE_CHECK(deepen(config, options.ask, runs, report));
    if (report.explanation.verdict == explain::Verdict::explained)
      ROSE_CHECK(ask_callers(config, runs, report.schedule, report.explanation));
    explain::keep_best(report.explanation.suspects);
  } else {
    report.explanation = unexplained(made);
    report.explanation.limits = watchable.unseen;
  }
  report.name = config.name;
  report.schedule_path = options.schedule;
  report.config_path = options.config;
  report.written = options.out;
  report.runs = runs.made();
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
          "It runs a schedule that reproduces, by turns with runs without faults, and with runs in which each fault "
          "fires one call earlier or later, or at "
          "no step in particular, or lasts less. "
          "It compares what the nodes do from the first fault on: functions entered or no longer entered, failed and "
          "state-changing calls, log "
          "messages, ends of processes, silences. What differs between equal runs is noise, and does not count.\n\n"
          "It tells the suspects, best first, and the story from the fault to the symptom. When failing and sound runs "
          "differ in nothing "
          "beyond noise, it says so.\n\n"
          "Functions are those that `functions` and `sources` of the configuration name; where it names none, all of "
          "the node's own program that "
          "its debug information knows, of a JVM the package of its main class. A node whose command is a script is "
          "started once, to see what it runs. The exit code is 0 when something was told, 1 when the bug did not show, "
          "4 when nothing was found or "
          "it could not tell.",
      .examples = {"rose explain schedule.toml -c rose.toml",
                   "rose explain schedule.toml -c rose.toml --runs 8 --jobs 2 --report why",
                   "rose explain schedule.toml -c rose.toml --ask 'store(text)' 'store:return' 'store.c:31:bad'",
                   "rose explain schedule.toml -c rose.toml --deepen"},
      .options =
          {
              {.names = "schedule",
               .slot = &options->schedule,
               .value = "SCHEDULE",
               .help = "A schedule that reproduces the bug",
               .required = true,
               .completes = Completes::file},
              {.names = "-c,--config",
               .slot = &options->config,
               .value = "FILE",
               .help = "The deployment",
               .completes = Completes::file},
              {.names = "-o,--output",
               .slot = &options->out,
               .value = "FILE",
               .help = "Where the explanation is written",
               .completes = Completes::file},
              {.names = "--runs",
               .slot = &options->runs,
               .value = "N",
               .help = "How many runs that reproduce, and as many without faults; of the schedule at most twice as "
                       "many and two are made. Where nothing is said, two more, and two "
                       "more, are made while noise leaves it open what differs. One run more tells who calls the "
                       "suspects, with a wrong clock one more",
               .otherwise = std::to_string(kWantedRuns),
               .range = {{2, 100}}},
              {.names = "--jobs",
               .slot = &options->jobs,
               .value = "N",
               .help = "Runs side by side",
               .otherwise = "jobs of the configuration",
               .range = {{1, 64}}},
              {.names = "--ask",
               .slot = &options->ask,
               .value = "QUERY",
               .help = "Also record this value in all runs, and tell how failing and sound ones differ in it: " +
                       std::string(symbols::kQueryForms) +
                       ". Names, types and members need debug information (-g); without any, f(arg1) and f:return are "
                       "raw integers"},
              {.names = "--deepen",
               .slot = &options->deepen,
               .help =
                   "Then ask by itself: arguments, results and calls of the suspects, then of the functions entered "
                   "from the fault to the symptom, at most " +
                   std::to_string(kMostRounds) +
                   " rounds of --runs runs on each side; what tells failing from sound runs is kept, and asked again"},
              {.names = "--report",
               .slot = &options->report,
               .value = "DIR",
               .help = "Write the record of all runs, their traces, the explanation and report.html to this folder",
               .completes = Completes::folder},
              {.names = "--keep", .slot = &options->keep, .help = "Keep all run directories"},
              {.names = "--allow-attached",
               .slot = &options->allow_attached,
               .help = "Allow faults on nodes that rose did not start; they may be production"},
          },
      .files = {{"DIR/report.html",
                 "Of --report: suspects, and the story on the time line of a run. One file that fetches nothing."}},
      .run = [options](const Common& common) { return run_explain(*options, common); },
  };
}

}  // namespace rose::cli
