// Replays as tests, for one or many schedules: as text, as JSON (--json) and for test tools (JUnit, TAP).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/dump/text.h"
#include "report/results.h"

namespace rose::report {

enum class Outcome {
  passed,
  flaky,  // quarantined: reported but not a failure
  inconclusive,
  failed,
  broken,  // its runs could not be made
};

struct SuiteEntry {
  std::string name;
  ReplayReport report;  // paths and schedule are set even if it is broken
  std::optional<Error> error;

  [[nodiscard]] Outcome outcome() const;
  [[nodiscard]] int exit_code() const;
};

struct SuiteReport {
  std::vector<SuiteEntry> entries;
  bool expect_fixed = false;
  double seconds = 0;

  [[nodiscard]] int count(Outcome outcome) const;
  // A single failure fails the suite; otherwise an undecided entry makes it inconclusive.
  [[nodiscard]] schedule::Verdict verdict() const;
  // 0 if all passed or are flaky; otherwise the first that applies: 70, 3, 2 (broken), 1 (failed), 4 (inconclusive).
  [[nodiscard]] int exit_code() const;
};

[[nodiscard]] std::string suite_json(const SuiteReport& report);
// One line for each test, details for those that did not pass, and a final line.
[[nodiscard]] std::string suite_text(const SuiteReport& report);

// A test suite per schedule, with one test case for the schedule, which decides, and one per run. A run with an
// unwanted outcome is a failure only if the schedule fails.
[[nodiscard]] std::string replay_junit(const ReplayReport& report);
[[nodiscard]] std::string suite_junit(const SuiteReport& report);

// Test Anything Protocol, version 14, one line each. Flaky tests are marked TODO, which does not count as a failure.
[[nodiscard]] std::string replay_tap(const ReplayReport& report);
[[nodiscard]] std::string suite_tap(const SuiteReport& report);

// What replay_json() prints.
[[nodiscard]] Json replay_object(const ReplayReport& report);

}  // namespace rose::report
