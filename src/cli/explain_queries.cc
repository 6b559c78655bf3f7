#include "cli/explain_queries.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "base/log.h"
#include "replay/ask.h"

namespace rose::cli {
namespace {

constexpr std::size_t kRoundFunctions = 6;  // functions per round
constexpr std::size_t kRoundQuestions = 40;
// The number of queries about results of functions in each round, in addition to kRoundQuestions. A function reports an
// error, or another effect of the fault, to its caller by its result. Therefore results are more informative than
// arguments, and few queries about them are enough for a function.
constexpr std::size_t kRoundResults = 32;
constexpr std::size_t kMostKept = 20;     // informative queries that are repeated in later rounds
constexpr std::size_t kRoundBesides = 2;  // runs per round in which the faults come a little earlier or later

// Queries whose values distinguished failing from correct runs in some round, with the score of the last such round.
// The score is 0 if only further runs can show whether the values distinguish them.
using Informative = std::map<std::string, double>;

// The numbers of queries that became informative or undecided in a round.
struct Fresh {
  std::size_t differing = 0, undecided = 0;
};

// Adds the informative and the undecided queries of the explanation.
Fresh add_informative(const explain::Explanation& explanation, Informative& informative) {
  Fresh fresh;
  for (const explain::ValueTable& table : explanation.values) {
    const auto known = informative.find(table.query);
    if (table.score > 0 && (known == informative.end() || known->second == 0)) ++fresh.differing;
    if (table.undecided && known == informative.end()) ++fresh.undecided;
    if (table.score > 0) informative[table.query] = table.score;
    else if (table.undecided) informative.emplace(table.query, 0);
  }
  return fresh;
}

// How many queries have values that distinguish failing from correct runs.
std::ptrdiff_t informative_values(const explain::Explanation& explanation) {
  return std::count_if(explanation.values.begin(), explanation.values.end(),
                       [](const explain::ValueTable& table) { return table.score > 0; });
}

// The queries to repeat: those of the user, then the informative ones, best first.
std::vector<std::string> kept_questions(const std::vector<std::string>& own, const Informative& informative) {
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [query, score] : informative) ranked.emplace_back(-score, query);
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> kept = own;
  for (const auto& [score, query] : ranked)
    if (kept.size() < own.size() + kMostKept && std::find(kept.begin(), kept.end(), query) == kept.end())
      kept.push_back(query);
  return kept;
}

// `all`: the functions about which earlier rounds asked everything; `results`: those about whose results they asked.
struct AskedAbout {
  std::set<std::string> all, results;
};

// The queries of a round. First come those to repeat, then those about the results of further functions, then all
// queries about the best functions that were not queried yet. Adds the functions to `about_before`.
std::vector<std::string> questions_of(const explain::Explanation& explanation, const std::vector<std::string>& kept,
                                      AskedAbout& about_before, replay::QueryFinder& finder, explain::Round& round) {
  std::vector<std::string> questions = kept;
  std::set<std::string>& asked_about = about_before.all;
  const std::size_t most_results = std::min(kept.size() + kRoundResults, replay::kMostQueries);
  for (const std::string& function : explain::result_functions(explanation, about_before.results)) {
    if (questions.size() + 2 > most_results) break;
    about_before.results.insert(function);
    for (const std::string& question : finder.about(function))
      if (explain::is_about_result(question) &&
          std::find(questions.begin(), questions.end(), question) == questions.end())
        questions.push_back(question);
  }
  const std::size_t most = std::min(questions.size() + kRoundQuestions, replay::kMostQueries);
  for (const std::string& function : explain::next_functions(explanation, asked_about, SIZE_MAX)) {
    if (round.functions.size() == kRoundFunctions || questions.size() >= most) break;
    asked_about.insert(function);
    const std::vector<std::string> about = finder.about(function);
    if (about.empty()) continue;
    round.functions.push_back(function);
    for (const std::string& question : about)
      if (questions.size() < most && std::find(questions.begin(), questions.end(), question) == questions.end())
        questions.push_back(question);
  }
  return questions;
}

// Determines the callers of these functions in one more run that `record` makes. Functions that cannot be traced are
// skipped.
using RecordCallers = std::function<Result<std::vector<explain::Call>>(const replay::ValueQueries&)>;
Result<std::vector<explain::Call>> callers_of(const std::vector<std::string>& functions, const config::Config& config,
                                              replay::QueryFinder& finder, const RecordCallers& record,
                                              std::vector<std::string>& limits) {
  std::vector<std::string> questions;
  for (const std::string& function : functions) {
    const std::string question = function + ":callers";
    const std::vector<std::string> about = finder.about(function);
    if (std::find(about.begin(), about.end(), question) != about.end()) questions.push_back(question);
  }
  if (questions.empty()) return std::vector<explain::Call>();
  const Result<replay::ValueQueries> asked = replay::ask(config, questions, true, true);
  if (!asked) {
    limits.push_back(asked.error().message);
    return std::vector<explain::Call>();
  }
  return record(*asked);
}

}  // namespace

Result<bool> deepen(const config::Config& config, replay::QueryFinder& finder, const std::vector<std::string>& own,
                    Depth depth, ComparedRuns& runs, report::ExplanationReport& report, explain::Kept& kept_runs) {
  bool reported = false;
  double spent = 0;
  AskedAbout asked_about;
  Informative informative;  // also of rounds that explain nothing, because each function is queried only once
  (void)add_informative(report.explanation, informative);
  std::vector<explain::Round> rounds;
  std::string ended = fmt::format("queries ended after {} rounds: further ones may be possible", kMostRounds);
  const auto note = [&](std::string why) { ended = std::move(why); };
  while (rounds.size() < kMostRounds) {
    if (depth.most && spent + depth.expected > *depth.most) {
      note(fmt::format("queries ended after {}: another round would take about {:.0f} s; --deepen makes up to {}",
                       rounds.size() == 1 ? "1 round" : fmt::format("{} rounds", rounds.size()), depth.expected,
                       kMostRounds));
      break;
    }
    explain::Round round;
    const std::vector<std::string> kept = kept_questions(own, informative);
    const std::vector<std::string> questions = questions_of(report.explanation, kept, asked_about, finder, round);
    if (round.functions.empty()) {
      note(rounds.empty() ? "no query was made: no native program and no JVM contains the functions between the "
                            "fault and the symptom"
                          : "");
      break;
    }
    Result<replay::ValueQueries> asked = replay::ask(config, questions, true);
    if (!asked) {
      note(fmt::format("queries ended: {}", asked.error().message));
      break;
    }
    // Queries that could not be recorded do not count.
    round.asked = static_cast<std::size_t>(std::count_if(asked->questions.begin(), asked->questions.end(),
                                                         [](const auto& one) { return one.refused.empty(); })) -
                  std::min(kept.size(), asked->questions.size());
    log::info("round {}: {} queries about {} functions, first {}; about {:.0f} s{}", rounds.size() + 1, round.asked,
              round.functions.size(), round.functions.front(), depth.expected,
              depth.most && rounds.empty() ? " (--no-deepen leaves this out)" : "");
    // A difference must appear in the runs of all rounds together, because in the few runs of one round a value may
    // differ by chance.
    ROSE_TRY(Compared compared, runs.make(*asked, kRoundBesides, kept_runs.input));
    round.runs = compared.made.runs;
    round.seconds = depth.expected = compared.seconds;
    spent += compared.seconds;
    round.share = compared.run_seconds > 0 ? compared.value_seconds / compared.run_seconds : 0;
    if (!compared.comparable) {
      rounds.push_back(round);
      note(
          fmt::format("queries ended: with values being read, the runs of round {} could not be compared; {} runs of "
                      "the schedule reproduced the bug",
                      rounds.size(), compared.made.reproduced));
      break;
    }
    explain::Input as_it_was = compared.input;  // copied first, because explain() changes its input
    explain::Explanation explanation = explain::explain(compared.input);
    const Fresh fresh = add_informative(explanation, informative);
    round.differing = fresh.differing;
    rounds.push_back(round);
    // The informative queries are repeated in each round. If fewer of them distinguish the runs than before, this
    // round's runs recorded less (a busy machine), and the result of the earlier round is kept.
    if (explanation.verdict == explain::Verdict::explained &&
        informative_values(explanation) >= informative_values(report.explanation)) {
      report.explanation = std::move(explanation);
      report.story = std::move(compared.input.story);
      reported = true;
      kept_runs.input = std::move(as_it_was);
    }
    // Stop when a round finds no further value that distinguishes failing from correct runs or may do so. If no round
    // has found one yet, continue along the path from the fault to the symptom, which is then the only guide.
    if (fresh.differing + fresh.undecided == 0 && !informative.empty()) {
      note("");
      break;
    }
  }
  // Drop values without information, but keep those that the user asked for.
  explain::drop_silent_values(report.explanation, own);
  if (!ended.empty()) report.explanation.limits.push_back(ended);
  kept_runs.deepened = true;
  kept_runs.deepen_ended = ended;
  kept_runs.own_questions = own;
  kept_runs.rounds = rounds;
  report.explanation.rounds = std::move(rounds);
  return reported;
}

Result<void> ask_callers(const config::Config& config, replay::QueryFinder& finder, const OfOneSide& functions,
                         ComparedRuns& runs, report::ExplanationReport& report, explain::Kept& kept) {
  explain::Explanation& explanation = report.explanation;
  const auto of_schedule = [&](const replay::ValueQueries& asked) -> Result<std::vector<explain::Call>> {
    ROSE_TRY(std::vector<explain::Call> calls, runs.callers(asked));
    if (calls.empty())
      kept.caller_limits.emplace_back(
          "the callers of the suspects are not known: no run that recorded them both reproduced the bug and called a "
          "suspect");
    return calls;
  };
  kept.caller_limits.clear();
  kept.outer_calls.clear();
  kept.lost_calls.clear();
  ROSE_TRY(kept.calls, callers_of(functions.fresh, config, finder, of_schedule, kept.caller_limits));
  explain::add_handlers(explanation, kept.calls);
  kept.outer = explain::decided_by_clock(report.schedule, explain::add_callers(explanation, kept.calls));
  if (!kept.outer.empty()) {
    ROSE_TRY(kept.outer_calls, callers_of(kept.outer, config, finder, of_schedule, kept.caller_limits));
    explain::add_outer_callers(explanation, kept.outer, kept.outer_calls);
  }
  if (const std::optional<std::int64_t> fault = explain::first_fault_ns(report.story);
      fault && !functions.lost.empty()) {
    const auto without_faults = [&](const replay::ValueQueries& asked) {
      return runs.callers_without_faults(asked, *fault);
    };
    ROSE_TRY(kept.lost_calls, callers_of(functions.lost, config, finder, without_faults, kept.caller_limits));
    explain::add_lost_callers(explanation, kept.lost_calls);
  }
  explanation.limits.insert(explanation.limits.end(), kept.caller_limits.begin(), kept.caller_limits.end());
  return {};
}

}  // namespace rose::cli
