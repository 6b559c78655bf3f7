// Shows replays as tests, for one or many schedules: as text, as JSON (--json), and for test tools (JUnit, TAP).
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
  flaky,  // quarantined, so it is reported but is no failure
  inconclusive,
  failed,
  broken,  // the runs could not be made
};

struct SuiteEntry {
  std::string name;
  ReplayReport report;  // the paths and the schedule are set even if the entry is broken
  std::optional<Error> error;

  [[nodiscard]] Outcome outcome() const;
  [[nodiscard]] int exit_code() const;
};

struct SuiteReport {
  std::vector<SuiteEntry> entries;
  bool expect_fixed = false;
  double seconds = 0;

  [[nodiscard]] int count(Outcome outcome) const;
  // The suite has the unwanted verdict if one of its entries has failed. Otherwise, if an entry is inconclusive or
  // broken, the suite is inconclusive.
  [[nodiscard]] schedule::Verdict verdict() const;
  // 0 if all entries passed or are flaky. Otherwise the first of these that applies to an entry: 70, 3, 2 (broken), 1
  // (failed), 4 (inconclusive).
  [[nodiscard]] int exit_code() const;
};

[[nodiscard]] std::string suite_json(const SuiteReport& report);
// Prints one line for each test, details for those that did not pass, and a final line.
[[nodiscard]] std::string suite_text(const SuiteReport& report);

// Prints one test suite for each schedule. A test suite has one test case for the schedule as a whole, which decides,
// and one for each run. A run with an unwanted verdict is reported as a failure only if the schedule fails; otherwise
// it is reported as skipped.
[[nodiscard]] std::string replay_junit(const ReplayReport& report);
[[nodiscard]] std::string suite_junit(const SuiteReport& report);

// Prints the Test Anything Protocol, version 14, with one line for each test. Flaky tests are marked TODO, which does
// not count as a failure.
[[nodiscard]] std::string replay_tap(const ReplayReport& report);
[[nodiscard]] std::string suite_tap(const SuiteReport& report);

// The object that replay_json() prints.
[[nodiscard]] Json replay_object(const ReplayReport& report);

}  // namespace rose::report
