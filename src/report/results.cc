#include "report/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "report/dump/show.h"
#include "report/dump/text.h"

namespace rose::report {
namespace {

constexpr std::size_t kShownTried = 20;  // in the text form

Json faults_json(const schedule::Schedule& schedule) {
  Json faults = Json::array();
  for (const schedule::Fault& fault : schedule.faults)
    faults.push_back({{"id", fault.id},
                      {"kind", schedule::kind_name(fault.kind)},
                      {"node", fault.node},
                      {"words", schedule::in_words(fault)}});
  return faults;
}

Json discarded_json(const diagnose::Plan& plan) {
  Json discarded = Json::array();
  for (const diagnose::Discarded& group : plan.discarded)
    discarded.push_back({{"why", group.why}, {"events", group.events}});
  return discarded;
}

}  // namespace

std::string plan_json(const diagnose::Plan& plan, const std::vector<PlanFile>& files) {
  Json candidates = Json::array();
  for (const diagnose::Candidate* candidate : diagnose::by_rank(plan)) {
    Json features = Json::object();
    for (const diagnose::FeatureEntry& feature : diagnose::features())
      features[std::string(feature.name)] = std::round(candidate->features[feature.feature] * 1e6) / 1e6;
    candidates.push_back({{"rank", candidate->rank},
                          {"id", candidate->id},
                          {"kind", schedule::kind_name(candidate->kind)},
                          {"node", candidate->node},
                          {"nodes", candidate->nodes},
                          {"syscall", text_or_null(candidate->syscall)},
                          {"error", text_or_null(candidate->error)},
                          {"path", text_or_null(candidate->path)},
                          {"peer", text_or_null(candidate->peer)},
                          {"count", candidate->count},
                          {"first_ts", candidate->first_ts},
                          {"why", candidate->why},
                          {"known", evidence::known_name(candidate->known)},
                          {"probability", candidate->weight},
                          {"features", std::move(features)},
                          {"symptom", candidate->symptom},
                          {"weight", candidate->weight},
                          {"words", schedule::in_words(candidate->fault)}});
    if (candidate->kind != schedule::FaultKind::exception) continue;
    Json& exception = candidates.back();
    exception["throws"] = candidate->fault.throws;
    exception["function"] = candidate->fault.function;
    exception["line"] = candidate->fault.at_line ? Json(*candidate->fault.at_line) : Json(nullptr);
  }
  Json schedules = Json::array();
  for (const schedule::Schedule& schedule : plan.schedules) schedules.push_back(schedule::to_toml(schedule));
  Json read = Json::array();
  for (const PlanFile& file : files)
    read.push_back(
        {{"file", file.file}, {"messages", file.messages}, {"timed", file.timed}, {"node", text_or_null(file.node)}});
  return json_line({{"candidates", std::move(candidates)},
                    {"discarded", discarded_json(plan)},
                    {"files", std::move(read)},
                    {"failures", plan.failures},
                    {"discarded_share", plan.discarded_share},
                    {"notes", plan.notes},
                    {"warnings", plan.warnings},
                    {"schedules", std::move(schedules)}});
}

namespace {

// The remarks on the plan. A warning may also be among the notes; then it is printed only once.
std::string remarks(const diagnose::Plan& plan) {
  std::string out;
  for (const std::string& warning : plan.warnings) out += fmt::format("warning: {}\n", printable(warning));
  for (const std::string& note : plan.notes)
    if (std::find(plan.warnings.begin(), plan.warnings.end(), note) == plan.warnings.end())
      out += fmt::format("note: {}\n", printable(note));
  return out;
}

}  // namespace

std::string plan_text(const diagnose::Plan& plan, bool only_logs) {
  std::string out = only_logs ? fmt::format("{} may be the cause of log messages, {} discarded",
                                            plural(plan.failures, "failure"), percent(plan.discarded_share))
                              : fmt::format("{} in the dump, {} discarded\n", plural(plan.failures, "failure"),
                                            percent(plan.discarded_share));
  out += "\ncandidates, most likely first:\n";
  if (plan.candidates.empty())
    out += only_logs ? "  none yet: no message names a call, a process or a peer that a fault can affect. A diagnosis "
                       "starts with a run without faults, and\n  then tries the calls shortly before messages that "
                       "only the failure's logs contain, and crashes, pauses and partitions of the nodes\n"
                     : "  none\n";
  for (const diagnose::Candidate* candidate : diagnose::by_rank(plan))
    out += fmt::format("  {:>3}. {}{}\n       {}\n", candidate->rank, printable(schedule::in_words(candidate->fault)),
                       candidate->symptom ? "  [symptom]" : "", printable(candidate->why));
  if (!plan.candidates.empty())
    out +=
        "  --json adds their IDs, for --rule-out, and what speaks for and against each; --show-weights explains that\n";
  if (!plan.discarded.empty()) {
    out += "\ndiscarded:\n";
    for (const diagnose::Discarded& group : plan.discarded)
      out += fmt::format("  {:>8}  {}\n", group.events, printable(group.why));
  }
  if (!plan.schedules.empty()) {
    out += "\nschedules that would be tried first:\n";
    constexpr std::size_t kShown = 5;
    for (std::size_t i = 0; i < std::min(plan.schedules.size(), kShown); ++i)
      out += fmt::format("  {}.\n{}", i + 1, indented(schedule::in_words(plan.schedules[i]), "     "));
    if (plan.schedules.size() > kShown) out += fmt::format("  ... and {} more\n", plan.schedules.size() - kShown);
  }
  out += remarks(plan);
  return out;
}

std::string diagnosis_json(const DiagnosisReport& report) {
  const diagnose::Diagnosis& diagnosis = *report.diagnosis;
  Json tried = Json::array();
  for (const diagnose::Tried& entry : diagnosis.tried)
    tried.push_back({{"level", entry.level},
                     {"words", diagnose::in_words(entry)},
                     {"faults", faults_json(entry.schedule)},
                     {"runs", entry.tally.runs()},
                     {"reproduced", entry.tally.reproduced},
                     {"not_reproduced", entry.tally.not_reproduced},
                     {"inconclusive", entry.tally.inconclusive},
                     {"rate", entry.tally.conclusive() > 0 ? Json(entry.tally.rate()) : Json(nullptr)},
                     {"note", entry.note}});
  Json not_tried = Json::array();
  for (const diagnose::NotTried& one : diagnosis.next)
    not_tried.push_back({{"level", one.level},
                         {"words", schedule::in_words(one.schedule)},
                         {"faults", faults_json(one.schedule)},
                         {"why", one.why}});
  Json rivals = Json::array();
  for (const diagnose::Rival& rival : diagnosis.rivals)
    rivals.push_back({{"id", rival.id},
                      {"words", schedule::in_words(rival.schedule)},
                      {"rate", rival.tally.rate()},
                      {"would_have_shown", rival.would_have_shown},
                      {"test", rival.test},
                      {"runs", rival.tally.conclusive()},
                      {"reproduced", rival.tally.reproduced},
                      {"certain", rival.certain},
                      {"faults", faults_json(rival.schedule)}});
  Json next = Json::array();
  for (const NextStep& step : next_steps(report))
    next.push_back({{"command", text_or_null(step.command)}, {"what", step.what}});
  return json_line({{"verdict", schedule::verdict_name(diagnosis.verdict)},
                    {"level", diagnosis.level},
                    {"schedules", diagnosis.schedules},
                    {"runs", diagnosis.runs},
                    {"confirm_runs", diagnosis.confirm_runs},
                    {"simplify_runs", diagnosis.simplify_runs},
                    {"rate_runs", diagnosis.rate_runs},
                    {"control_runs", diagnosis.control_runs},
                    {"control_hits", diagnosis.control_hits},
                    {"rate", diagnosis.unconfirmed ? Json(nullptr) : Json(diagnosis.tally.rate())},
                    {"interval", Json::array({diagnosis.interval.first, diagnosis.interval.second})},
                    {"schedule", text_or_null(report.schedule_path)},
                    {"words", diagnose::in_words(diagnosis)},
                    {"rivals", std::move(rivals)},
                    {"discarded_share", diagnosis.plan.discarded_share},
                    {"seconds", report.seconds},
                    {"first_reproduction_seconds",
                     report.first_reproduction_seconds ? Json(*report.first_reproduction_seconds) : Json(nullptr)},
                    {"jobs", report.jobs},
                    {"target_reached", diagnosis.target_reached},
                    {"target_rate", report.target_rate},
                    {"reason", diagnosis.reason},
                    {"faults", diagnosis.found ? faults_json(*diagnosis.found) : Json::array()},
                    {"seed", report.seed},
                    {"backend", text_or_null(report.backend)},
                    {"candidates", diagnosis.plan.candidates.size()},
                    {"failures", diagnosis.plan.failures},
                    {"discarded", discarded_json(diagnosis.plan)},
                    {"tried", std::move(tried)},
                    {"not_tried", std::move(not_tried)},
                    {"notes", diagnosis.plan.notes},
                    {"warnings", diagnosis.plan.warnings},
                    {"next", std::move(next)},
                    {"kept", report.kept},
                    {"report", text_or_null(report.page)}});
}

std::vector<NextStep> next_steps(const DiagnosisReport& report) {
  const diagnose::Diagnosis& diagnosis = *report.diagnosis;
  std::vector<NextStep> steps;
  if (diagnosis.found && !report.schedule_path.empty()) {
    const std::string replay =
        fmt::format("rose replay {} -c {}", shell_word(report.schedule_path), shell_word(report.config_path));
    steps.push_back({replay, "makes it fail again, to observe the failure"});
    steps.push_back({replay + " --expect fixed",
                     "after the fix: exits 0 only if the bug never occurs although every fault was effective"});
  }
  if (diagnosis.target_reached) return steps;
  if (diagnosis.unconfirmed) {
    steps.push_back({"",
                     "the same command without --stop-after found measures the rate and minimises the schedule; with "
                     "--report and --resume it makes none of the runs again"});
    return steps;
  }
  if (report.recorded && !steps.empty())
    steps.push_back({fmt::format("{} --report DIR", steps.front().command),
                     "whether it fails also depends on the order of events inside the program: the recordings of a "
                     "failing run fix that order; they are kept, with the command that replays each node from its "
                     "recording alone, the same way each time"});
  const bool inconclusive = diagnosis.verdict == schedule::Verdict::inconclusive;
  if (report.profile_path.empty() && !diagnosis.plan.candidates.empty())
    steps.push_back({fmt::format("rose profile -c {}", shell_word(report.config_path)),
                     "without a profile, normal failures are tried too; pass one with --profile"});
  if (diagnosis.interrupted)
    steps.push_back({"", "the same command with --resume continues from here, if --report kept its runs"});
  else if (inconclusive && diagnosis.plan.candidates.empty() && diagnosis.schedules == 0 && diagnosis.control_runs > 0)
    steps.push_back({"",
                     "the failure left no evidence here: give the nodes' logs with --log, alone or beside the dump; or "
                     "trace for longer, and with lower trace.network_delay and trace.pause, below which silences and "
                     "pauses are not recorded"});
  else if (inconclusive)
    steps.push_back({"",
                     "the reason above names why the runs were inconclusive: fix that, and diagnose again; --keep "
                     "keeps every run's folder"});
  else if (!diagnosis.found)
    steps.push_back({"",
                     "see what was tried: if the fault you suspect is not there, look for it among the candidates and "
                     "what was discarded (--plan prints both); if its context was never reached, name functions or "
                     "sources in the configuration"});
  return steps;
}

namespace {

std::string rivals_text(const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.rivals.empty()) return {};
  std::string out =
      "\nwhat else reproduces it (runs do not tell which of these happened; --rule-out ID excludes one that did "
      "not):\n";
  for (const diagnose::Rival& rival : diagnosis.rivals)
    out += fmt::format("  {}\n{}    {} of {} runs\n    it would have left: {}\n    check: {}\n", printable(rival.id),
                       indented(schedule::in_words(rival.schedule), "    "), rival.tally.reproduced,
                       rival.tally.conclusive(), printable(rival.would_have_shown), printable(rival.test));
  return out;
}

}  // namespace

std::string diagnosis_text(const DiagnosisReport& report) {
  const diagnose::Diagnosis& diagnosis = *report.diagnosis;
  std::string out = fmt::format("{}: {}\n", schedule::verdict_name(diagnosis.verdict), printable(diagnosis.reason));
  if (diagnosis.found) {
    out += "\nwhat must happen:\n" + indented(diagnose::in_words(diagnosis), "  ");
    out += fmt::format("\nschedule: {}\n", printable(report.schedule_path));
  }
  out += rivals_text(diagnosis);
  const std::vector<NextStep> steps = next_steps(report);
  if (!steps.empty()) {
    out += "\nwhat to do next:\n";
    for (const NextStep& step : steps)
      out += step.command.empty() ? fmt::format("  {}\n", step.what)
                                  : fmt::format("  {}\n      {}\n", printable(step.command), step.what);
  }
  out += "\n";
  if (diagnosis.found && !diagnosis.unconfirmed)
    out += fmt::format("rate: {}\n", rate_text(diagnosis.tally, diagnosis.interval));
  if (report.first_reproduction_seconds)
    out += fmt::format("first reproduced after {}\n", format_seconds(*report.first_reproduction_seconds));
  out += fmt::format("level {}, {}, {} ({} to confirm{}{}), {}; {} of {} discarded\n", diagnosis.level,
                     plural(static_cast<std::uint64_t>(diagnosis.schedules), "schedule"),
                     plural(static_cast<std::uint64_t>(diagnosis.runs), "run"), diagnosis.confirm_runs,
                     diagnosis.simplify_runs > 0 ? fmt::format(", {} to minimise it", diagnosis.simplify_runs) : "",
                     diagnosis.rate_runs > 0 ? fmt::format(", {} to measure its rate", diagnosis.rate_runs) : "",
                     format_seconds(report.seconds), percent(diagnosis.plan.discarded_share),
                     plural(diagnosis.plan.failures, "failure"));
  if (!diagnosis.target_reached && !diagnosis.unconfirmed && !diagnosis.tried.empty()) {
    std::vector<std::vector<std::string>> rows{
        {"tried:", "reproduced", "not", "could not tell", "why, and the result"}};
    const std::size_t shown = std::min(diagnosis.tried.size(), kShownTried);
    for (std::size_t i = 0; i < shown; ++i) {
      const diagnose::Tried& entry = diagnosis.tried[i];
      rows.push_back({entry.level == 0 ? "  no fault" : fmt::format("  level {}", entry.level),
                      std::to_string(entry.tally.reproduced), std::to_string(entry.tally.not_reproduced),
                      std::to_string(entry.tally.inconclusive), printable(entry.note)});
    }
    out += "\n" + columns(rows, "");
    if (diagnosis.tried.size() > shown)
      out += fmt::format("  and {} more; {} has all\n", diagnosis.tried.size() - shown,
                         report.page.empty() ? "--json" : "the report");
  }
  if (!diagnosis.next.empty()) {
    out += "\nnot tried, most likely first:\n";
    for (std::size_t i = 0; i < diagnosis.next.size(); ++i)
      out += fmt::format("  {}. level {}: {}\n{}", i + 1, diagnosis.next[i].level, printable(diagnosis.next[i].why),
                         indented(schedule::in_words(diagnosis.next[i].schedule), "     "));
  }
  out += remarks(diagnosis.plan);
  for (const std::string& directory : report.kept) out += fmt::format("kept: {}\n", printable(directory));
  if (!report.page.empty()) out += fmt::format("report: {}\n", printable(report.page));
  return out;
}

}  // namespace rose::report
