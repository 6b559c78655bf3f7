#include "report/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "report/dump/show.h"
#include "report/markup.h"

namespace rose::report {

using schedule::RunResult;
using schedule::Verdict;

namespace {

constexpr const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed: return "passed";
    case Outcome::flaky: return "flaky";
    case Outcome::inconclusive: return "inconclusive";
    case Outcome::failed: return "failed";
    case Outcome::broken: return "broken";
  }
  return "";
}

std::string reason_of(const SuiteEntry& entry) { return entry.error ? entry.error->message : entry.report.reason; }

// A <testsuite> element, and how many test cases of each kind it contains.
struct Counted {
  std::string element;
  int tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
};

std::string counts_of(const Counted& counted, std::string_view name) {
  return fmt::format("name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\"",
                     escape(name), counted.tests, counted.failures, counted.errors, counted.skipped, counted.seconds);
}

std::string open_case(std::string_view classname, std::string_view name, double seconds) {
  return fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">\n", escape(classname), escape(name),
                     seconds);
}

std::string mark(std::string_view kind, std::string_view type, std::string_view message, std::string_view text = {}) {
  std::string out = fmt::format("      <{} message=\"{}\"", kind, escape(message));
  if (!type.empty()) out += fmt::format(" type=\"{}\"", escape(type));
  return out + (text.empty() ? "/>\n" : fmt::format(">{}</{}>\n", escape(text), kind));
}

std::string output_of(std::string_view text) {
  return fmt::format("      <system-out>{}</system-out>\n    </testcase>\n", escape(text));
}

std::string began_text(std::int64_t began_ns) {
  if (began_ns == 0) return {};
  std::string began = wall_clock(began_ns).substr(0, 19);
  began[10] = 'T';
  return fmt::format(" timestamp=\"{}\"", began);
}

void add_run(const ReplayReport& report, const RunResult& run, std::string_view classname, bool failed,
             Counted& counted) {
  counted.element += open_case(classname, fmt::format("run {}", run.number), run.seconds);
  const bool wanted = run.verdict == (report.expect_fixed ? Verdict::not_reproduced : Verdict::reproduced);
  if (run.verdict == Verdict::inconclusive && report.verdict == Verdict::inconclusive) {
    ++counted.errors;
    counted.element += mark("error", "inconclusive", run.reason);
  } else if (run.verdict != Verdict::inconclusive && !wanted && failed) {
    ++counted.failures;
    counted.element += mark("failure", schedule::verdict_name(run.verdict), run.reason);
  } else if (!wanted) {
    ++counted.skipped;
    counted.element += mark("skipped", "", fmt::format("{}: {}", schedule::verdict_name(run.verdict), run.reason));
  }
  std::string text =
      fmt::format("{}: {}\n{}", schedule::verdict_name(run.verdict), run.reason, fault_table(report.schedule, run));
  if (!run.directory.empty()) text += fmt::format("kept in {}\n", run.directory.string());
  counted.element += output_of(text);
}

Counted junit_suite(const SuiteEntry& entry) {
  const ReplayReport& report = entry.report;
  const Outcome outcome = entry.outcome();
  const std::string classname =
      fmt::format("{}.{}", entry.name, report.schedule.name.empty() ? "schedule" : report.schedule.name);
  Counted counted;
  counted.tests = static_cast<int>(report.runs.size()) + 1;
  counted.seconds = report.seconds;
  counted.element = open_case(classname, report.expect_fixed ? "the bug is fixed" : "the bug is reproduced", 0);
  if (outcome == Outcome::failed) {
    ++counted.failures;
    counted.element += mark("failure", schedule::verdict_name(report.verdict), report.reason, rate_text(report.tally));
  } else if (outcome == Outcome::inconclusive) {
    ++counted.errors;
    counted.element += mark("error", "inconclusive", report.reason, rate_text(report.tally));
  } else if (outcome == Outcome::broken) {
    ++counted.errors;
    counted.element += mark("error", "broken", entry.error->message, entry.error->hint);
  } else if (outcome == Outcome::flaky) {
    ++counted.skipped;
    counted.element += mark("skipped", "", fmt::format("flaky: {}", report.reason));
  }
  counted.element += output_of(entry.error ? entry.error->message : replay_text(report));
  for (const RunResult& run : report.runs) add_run(report, run, classname, outcome == Outcome::failed, counted);
  counted.element = fmt::format("  <testsuite {}{}>\n{}  </testsuite>\n", counts_of(counted, entry.name),
                                began_text(report.began_ns), counted.element);
  return counted;
}

std::string junit_of(const std::vector<SuiteEntry>& entries, std::string_view name, std::optional<double> seconds) {
  Counted all;
  for (const SuiteEntry& entry : entries) {
    const Counted one = junit_suite(entry);
    all.element += one.element;
    all.tests += one.tests;
    all.failures += one.failures;
    all.errors += one.errors;
    all.skipped += one.skipped;
    all.seconds += one.seconds;
  }
  if (seconds) all.seconds = *seconds;
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n{}</testsuites>\n",
                     counts_of(all, name), all.element);
}

// Makes a text safe for a description: a description must not contain a newline, nor an unescaped '#', which starts a
// directive.
std::string tap_text(std::string_view text) { return replaced(replaced(printable(text), "\\", "\\\\"), "#", "\\#"); }

std::string yaml_string(std::string_view text) { return fmt::format("'{}'", replaced(printable(text), "'", "''")); }

std::string tap_of(const std::vector<SuiteEntry>& entries) {
  std::string out = fmt::format("TAP version 14\n1..{}\n", entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SuiteEntry& entry = entries[i];
    const Outcome outcome = entry.outcome();
    out += fmt::format("{} {} - {}", outcome == Outcome::passed ? "ok" : "not ok", i + 1, tap_text(entry.name));
    if (outcome == Outcome::flaky) out += fmt::format(" # TODO flaky: {}", tap_text(entry.report.reason));
    out += fmt::format("\n  ---\n  outcome: {}\n  message: {}\n", outcome_name(outcome), yaml_string(reason_of(entry)));
    if (!entry.error)
      out += fmt::format("  rate: {:.3f}\n  runs: {}\n  reproduced: {}\n  inconclusive: {}\n  seconds: {:.1f}\n",
                         entry.report.tally.rate(), entry.report.tally.runs(), entry.report.tally.reproduced,
                         entry.report.tally.inconclusive, entry.report.seconds);
    out += "  ...\n";
  }
  return out;
}

// The suite for a plain `rose replay`: its single schedule, with the name of the deployment.
std::vector<SuiteEntry> alone(const ReplayReport& report) {
  return {{report.name.empty() ? "rose" : report.name, report, std::nullopt}};
}

}  // namespace

Outcome SuiteEntry::outcome() const {
  if (error) return Outcome::broken;
  if (report.passed()) return Outcome::passed;
  if (report.flaky()) return Outcome::flaky;
  return report.verdict == Verdict::inconclusive ? Outcome::inconclusive : Outcome::failed;
}

int SuiteEntry::exit_code() const {
  switch (outcome()) {
    case Outcome::passed:
    case Outcome::flaky: return 0;
    case Outcome::failed: return 1;
    case Outcome::inconclusive: return 4;
    case Outcome::broken: break;
  }
  return rose::exit_code(error->kind);
}

int SuiteReport::count(Outcome outcome) const {
  return static_cast<int>(std::count_if(entries.begin(), entries.end(),
                                        [&](const SuiteEntry& entry) { return entry.outcome() == outcome; }));
}

Verdict SuiteReport::verdict() const {
  const Verdict wanted = expect_fixed ? Verdict::not_reproduced : Verdict::reproduced;
  if (count(Outcome::failed) > 0) return expect_fixed ? Verdict::reproduced : Verdict::not_reproduced;
  return count(Outcome::inconclusive) + count(Outcome::broken) > 0 ? Verdict::inconclusive : wanted;
}

int SuiteReport::exit_code() const {
  int worst = 0;
  constexpr std::array kOrder{0, 4, 1, 2, 3, 70};
  const auto rank = [&](int code) { return std::find(kOrder.begin(), kOrder.end(), code) - kOrder.begin(); };
  for (const SuiteEntry& entry : entries) {
    const int code = entry.exit_code();
    if (rank(code) > rank(worst)) worst = code;
  }
  return worst;
}

std::string suite_json(const SuiteReport& report) {
  schedule::Tally tally;
  Json schedules = Json::array();
  for (const SuiteEntry& entry : report.entries) {
    Json one = {{"name", entry.name},
                {"outcome", outcome_name(entry.outcome())},
                {"schedule", entry.report.schedule_path},
                {"config", entry.report.config_path}};
    if (entry.error) {
      one["error"] = entry.error->message;
    } else {
      one.update(replay_object(entry.report));
      tally.reproduced += entry.report.tally.reproduced;
      tally.not_reproduced += entry.report.tally.not_reproduced;
      tally.inconclusive += entry.report.tally.inconclusive;
    }
    schedules.push_back(std::move(one));
  }
  return json_line({{"verdict", schedule::verdict_name(report.verdict())},
                    {"passed", report.count(Outcome::passed)},
                    {"flaky", report.count(Outcome::flaky)},
                    {"failed", report.count(Outcome::failed)},
                    {"inconclusive_schedules", report.count(Outcome::inconclusive)},
                    {"broken", report.count(Outcome::broken)},
                    {"runs", tally.runs()},
                    {"reproduced", tally.reproduced},
                    {"not_reproduced", tally.not_reproduced},
                    {"inconclusive", tally.inconclusive},
                    {"seconds", report.seconds},
                    {"expect", report.expect_fixed ? "fixed" : "bug"},
                    {"schedules", std::move(schedules)}});
}

std::string suite_text(const SuiteReport& report) {
  std::string details;
  std::vector<std::vector<std::string>> table;
  for (const SuiteEntry& entry : report.entries) {
    const Outcome outcome = entry.outcome();
    if (entry.error)
      table.push_back({outcome_name(outcome), printable(entry.name), "", "", printable(entry.error->message)});
    else
      table.push_back({outcome_name(outcome), printable(entry.name), rate_text(entry.report.tally),
                       format_seconds(entry.report.seconds),
                       outcome == Outcome::passed ? "" : printable(entry.report.reason)});
    if (outcome == Outcome::passed) continue;
    details += fmt::format("\n{} ({}):\n", printable(entry.name), printable(entry.report.schedule_path));
    details += entry.error ? indented(entry.error->hint.empty() ? entry.error->message
                                                                : entry.error->message + "\n" + entry.error->hint,
                                      "  ")
                           : indented(replay_text(entry.report), "  ");
  }
  std::string closing = plural(report.entries.size(), "schedule") + ":";
  for (const Outcome outcome :
       {Outcome::passed, Outcome::flaky, Outcome::failed, Outcome::inconclusive, Outcome::broken})
    if (const int n = report.count(outcome); n > 0 || outcome == Outcome::passed || outcome == Outcome::failed)
      closing += fmt::format("{} {} {}", closing.ends_with(':') ? "" : ",", n, outcome_name(outcome));
  return fmt::format("{}{}\n{}, {}\n", columns(table, ""), details, closing, format_seconds(report.seconds));
}

std::string replay_junit(const ReplayReport& report) {
  return junit_of(alone(report), report.name.empty() ? "rose" : report.name, report.seconds);
}

std::string suite_junit(const SuiteReport& report) { return junit_of(report.entries, "rose replay", report.seconds); }

std::string replay_tap(const ReplayReport& report) { return tap_of(alone(report)); }

std::string suite_tap(const SuiteReport& report) { return tap_of(report.entries); }

}  // namespace rose::report
