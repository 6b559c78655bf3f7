#include "report/results.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "schedule/record.h"

namespace rose::report {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  // Paths may hold bytes that are not UTF-8: they are replaced, the object stays valid JSON.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json interval_json(const schedule::Tally& tally) {
  const auto [low, high] = tally.interval();
  return Json::array({low, high});
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string rate_text(const schedule::Tally& tally) {
  const auto [low, high] = tally.interval();
  return fmt::format("{} of {} conclusive runs ({}, 95 % interval {}-{})", tally.reproduced, tally.conclusive(),
                     percent(tally.rate()), percent(low), percent(high));
}

std::string since_workload(std::int64_t ns) {
  return ns < 0 ? fmt::format("{:.3f} s before", static_cast<double>(-ns) / 1e9)
                : fmt::format("{:.3f} s", static_cast<double>(ns) / 1e9);
}

// Columns as wide as their widest cell; the last one as it is.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], i + 1 < row.size() ? widths[i] : 0);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string thread_of(int pid, int tid) {
  if (tid <= 0) return pid > 0 ? std::to_string(pid) : "";
  return pid == tid || pid <= 0 ? std::to_string(tid) : fmt::format("{}/{}", pid, tid);
}

std::string xml_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

std::string indented(std::string_view text, std::string_view by) {
  std::string out;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    out += fmt::format("{}{}\n", by, text.substr(start, end - start));
    start = end + 1;
  }
  return out;
}

}  // namespace

std::vector<FaultCount> ReplayReport::faults() const {
  std::vector<FaultCount> counts;
  for (const schedule::Fault& fault : schedule.faults) {
    FaultCount count{fault.id, static_cast<int>(runs.size()), 0, {}};
    for (const schedule::RunResult& run : runs) {
      const auto outcome = std::find_if(run.faults.begin(), run.faults.end(),
                                        [&](const schedule::FaultOutcome& o) { return o.id == fault.id; });
      if (outcome == run.faults.end())
        count.why_not = run.reason;  // the run ended before faults were armed
      else if (outcome->fired)
        ++count.fired;
      else
        count.why_not = outcome->withdrawn ? "another fault of its group fired" : outcome->why_not;
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

std::string replay_json(const ReplayReport& report) {
  Json faults = Json::array();
  for (const FaultCount& fault : report.faults()) {
    Json entry = {{"id", fault.id}, {"requested", fault.requested}, {"fired", fault.fired}};
    if (fault.fired < fault.requested) entry["why_not"] = fault.why_not;
    faults.push_back(std::move(entry));
  }
  Json runs = Json::array();
  for (const schedule::RunResult& run : report.runs)
    runs.push_back({{"number", run.number},
                    {"verdict", schedule::verdict_name(run.verdict)},
                    {"reason", run.reason},
                    {"seconds", run.seconds},
                    {"directory", text_or_null(run.directory.string())},
                    {"faults", Json::parse(schedule::outcomes_json(run.faults))}});
  Json json = {{"verdict", schedule::verdict_name(report.verdict)},
               {"rate", report.tally.rate()},
               {"interval", interval_json(report.tally)},
               {"runs", report.tally.runs()},
               {"reproduced", report.tally.reproduced},
               {"not_reproduced", report.tally.not_reproduced},
               {"inconclusive", report.tally.inconclusive},
               {"seconds", report.seconds},
               {"faults", std::move(faults)},
               {"reason", report.reason},
               {"target_rate", report.target_rate},
               {"expect", report.expect_fixed ? "fixed" : "bug"},
               {"backend", text_or_null(report.backend)},
               {"run_results", std::move(runs)}};
  if (report.expect_fixed && report.tally.reproduced == 0)
    json["rate_upper_bound"] = schedule::upper_bound_without_hit(report.tally.conclusive());
  return dump(json);
}

std::string replay_text(const ReplayReport& report) {
  std::string out = fmt::format("{}: {}\n", schedule::verdict_name(report.verdict), report.reason);
  out += fmt::format("rate: {}; {} runs, {} inconclusive, {:.1f} s\n", rate_text(report.tally), report.tally.runs(),
                     report.tally.inconclusive, report.seconds);
  if (report.expect_fixed && report.tally.reproduced == 0 && report.tally.conclusive() > 0)
    out += fmt::format("remaining rate: at most {} (95 %)\n",
                       percent(schedule::upper_bound_without_hit(report.tally.conclusive())));
  for (const FaultCount& fault : report.faults()) {
    out += fmt::format("fault {}: fired in {} of {} runs", fault.id, fault.fired, fault.requested);
    if (fault.fired < fault.requested) out += fmt::format(" ({})", fault.why_not);
    out += "\n";
  }
  if (!report.backend.empty()) out += fmt::format("syscall faults by: {}\n", report.backend);
  if (!report.runs.empty() && !report.schedule.faults.empty())
    out += "last run:\n" + fault_table(report.schedule, report.runs.back());
  return out;
}

std::string replay_junit(const ReplayReport& report) {
  // A test suite of the system under test: with --expect bug a run passes when the bug shows.
  int failures = 0;
  int skipped = 0;
  std::string cases;
  for (const schedule::RunResult& run : report.runs) {
    cases += fmt::format("  <testcase classname=\"{}\" name=\"run {}\" time=\"{:.3f}\">", xml_escape(report.schedule.name),
                         run.number, run.seconds);
    const bool wanted = run.verdict == (report.expect_fixed ? schedule::Verdict::not_reproduced
                                                            : schedule::Verdict::reproduced);
    if (run.verdict == schedule::Verdict::inconclusive) {
      ++skipped;
      cases += fmt::format("<skipped message=\"{}\"/>", xml_escape(run.reason));
    } else if (!wanted) {
      ++failures;
      cases += fmt::format("<failure message=\"{}\">{}</failure>", xml_escape(schedule::verdict_name(run.verdict)),
                           xml_escape(run.reason));
    }
    cases += "</testcase>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{:.3f}\">\n{}</testsuite>\n",
      xml_escape(report.name), report.runs.size(), failures, skipped, report.seconds, cases);
}

std::string fault_table(const schedule::Schedule& schedule, const schedule::RunResult& run) {
  std::vector<std::vector<std::string>> rows{{"", "at", "node", "pid/thread", "seen", ""}};
  for (const schedule::FaultOutcome& outcome : run.faults) {
    const schedule::Fault* fault = schedule.find(outcome.id);
    if (fault == nullptr) continue;
    rows.push_back({outcome.id});
    for (std::size_t i = 0; i < outcome.conditions.size(); ++i) {
      const schedule::ConditionOutcome& condition = outcome.conditions[i];
      // Of time passing there is nothing to count.
      const bool counted = i < fault->when.size() && fault->when[i].kind != schedule::ConditionKind::elapsed;
      rows.push_back({fmt::format("  {}. {}", i + 1, condition.words), condition.met ? since_workload(condition.met_ns) : "never",
                      condition.node, thread_of(condition.pid, condition.tid),
                      counted ? fmt::format("{} of {}", condition.seen, condition.wanted) : "", ""});
    }
    if (!outcome.fired) {
      rows.push_back({"  fired", "never", "", "", outcome.seen > 0 ? fmt::format("{} calls", outcome.seen) : "",
                      outcome.withdrawn ? "another fault of its group fired" : outcome.why_not});
      continue;
    }
    rows.push_back({"  fired", since_workload(outcome.fired_ns), outcome.node, thread_of(outcome.pid, outcome.tid),
                    outcome.seen > 0 ? fmt::format("{} calls", outcome.seen) : "", outcome.detail});
    if (outcome.ended_ns != 0) rows.push_back({"  ended", since_workload(outcome.ended_ns), outcome.node, "", "", ""});
  }
  std::string out;
  for (const schedule::FaultOutcome& outcome : run.faults) {
    if (const schedule::Fault* fault = schedule.find(outcome.id); fault != nullptr) {
      out += fmt::format("  {}: {}\n", outcome.id, schedule::in_words(*fault));
    }
  }
  return out + columns(rows, "  ");
}

std::string plan_json(const diagnose::Plan& plan) {
  Json candidates = Json::array();
  for (const diagnose::Candidate& candidate : plan.candidates)
    candidates.push_back({{"rank", candidate.rank},
                          {"kind", schedule::kind_name(candidate.kind)},
                          {"node", candidate.node},
                          {"syscall", text_or_null(candidate.syscall)},
                          {"error", text_or_null(candidate.error)},
                          {"path", text_or_null(candidate.path)},
                          {"peer", text_or_null(candidate.peer)},
                          {"count", candidate.count},
                          {"first_ts", candidate.first_ts},
                          {"why", candidate.why},
                          {"symptom", candidate.symptom},
                          {"words", schedule::in_words(candidate.fault)}});
  Json discarded = Json::array();
  for (const diagnose::Discarded& group : plan.discarded)
    discarded.push_back({{"why", group.why}, {"events", group.events}});
  Json schedules = Json::array();
  for (const schedule::Schedule& schedule : plan.schedules) schedules.push_back(schedule::to_toml(schedule));
  return dump({{"candidates", std::move(candidates)},
               {"discarded", std::move(discarded)},
               {"failures", plan.failures},
               {"discarded_share", plan.discarded_share},
               {"notes", plan.notes},
               {"schedules", std::move(schedules)}});
}

std::string plan_text(const diagnose::Plan& plan) {
  std::string out = fmt::format("{} failures in the dump, {} discarded\n", plan.failures, percent(plan.discarded_share));
  out += "\ncandidates, most likely first:\n";
  if (plan.candidates.empty()) out += "  none\n";
  for (const diagnose::Candidate& candidate : plan.candidates)
    out += fmt::format("  {:>3}. {}{}\n       {}\n", candidate.rank, schedule::in_words(candidate.fault),
                       candidate.symptom ? "  [symptom]" : "", candidate.why);
  if (!plan.discarded.empty()) {
    out += "\ndiscarded:\n";
    for (const diagnose::Discarded& group : plan.discarded) out += fmt::format("  {:>8}  {}\n", group.events, group.why);
  }
  if (!plan.schedules.empty()) {
    out += "\nschedules that would be tried first:\n";
    constexpr std::size_t kShown = 5;
    for (std::size_t i = 0; i < std::min(plan.schedules.size(), kShown); ++i)
      out += fmt::format("  {}.\n{}", i + 1, indented(schedule::in_words(plan.schedules[i]), "     "));
    if (plan.schedules.size() > kShown) out += fmt::format("  ... and {} more\n", plan.schedules.size() - kShown);
  }
  for (const std::string& note : plan.notes) out += fmt::format("note: {}\n", note);
  return out;
}

std::string diagnosis_json(const diagnose::Diagnosis& diagnosis, const std::string& schedule_path, double seconds) {
  Json tried = Json::array();
  for (const diagnose::Tried& entry : diagnosis.tried)
    tried.push_back({{"level", entry.level},
                     {"words", schedule::in_words(entry.schedule)},
                     {"reproduced", entry.tally.reproduced},
                     {"not_reproduced", entry.tally.not_reproduced},
                     {"inconclusive", entry.tally.inconclusive},
                     {"note", entry.note}});
  return dump({{"verdict", schedule::verdict_name(diagnosis.verdict)},
               {"level", diagnosis.level},
               {"schedules", diagnosis.schedules},
               {"runs", diagnosis.runs},
               {"confirm_runs", diagnosis.confirm_runs},
               {"rate", diagnosis.tally.rate()},
               {"interval", interval_json(diagnosis.tally)},
               {"schedule", text_or_null(schedule_path)},
               {"words", diagnosis.words},
               {"discarded_share", diagnosis.plan.discarded_share},
               {"seconds", seconds},
               {"target_reached", diagnosis.target_reached},
               {"reason", diagnosis.reason},
               {"tried", std::move(tried)}});
}

std::string diagnosis_text(const diagnose::Diagnosis& diagnosis, const std::string& schedule_path, double seconds) {
  std::string out = fmt::format("{}: {}\n", schedule::verdict_name(diagnosis.verdict), diagnosis.reason);
  if (diagnosis.found) {
    out += "what must happen:\n" + indented(diagnosis.words, "  ");
    out += fmt::format("rate: {}\n", rate_text(diagnosis.tally));
    out += fmt::format("schedule: {}\n", schedule_path);
  }
  out += fmt::format("level {}, {} schedules, {} runs ({} to confirm), {:.1f} s; {} of the dump's failures discarded\n",
                     diagnosis.level, diagnosis.schedules, diagnosis.runs, diagnosis.confirm_runs, seconds,
                     percent(diagnosis.plan.discarded_share));
  if (!diagnosis.target_reached && !diagnosis.tried.empty()) {
    out += "tried:\n";
    for (const diagnose::Tried& entry : diagnosis.tried)
      out += fmt::format("  {} reproduced, {} not, {} inconclusive: {}\n", entry.tally.reproduced,
                         entry.tally.not_reproduced, entry.tally.inconclusive, entry.note);
  }
  for (const std::string& note : diagnosis.plan.notes) out += fmt::format("note: {}\n", note);
  return out;
}

}  // namespace rose::report
