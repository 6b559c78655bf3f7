// Replays as tests: of one schedule or of many, for people, machines (--json) and what runs tests (JUnit, TAP).
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
  flaky,  // quarantined: told, no failure
  inconclusive,
  failed,
  broken,  // its runs could not be made
};

struct SuiteEntry {
  std::string name;
  ReplayReport report;  // its paths and schedule are set also when it is broken
  std::optional<Error> error;

  [[nodiscard]] Outcome outcome() const;
  [[nodiscard]] int exit_code() const;
};

struct SuiteReport {
  std::vector<SuiteEntry> entries;
  bool expect_fixed = false;
  double seconds = 0;

  [[nodiscard]] int count(Outcome outcome) const;
  // One failure fails the suite; an entry that could not tell leaves it inconclusive.
  [[nodiscard]] schedule::Verdict verdict() const;
  // 0: all passed or are flaky; of several that did not, the first of: 70, 3, 2 (broken), 1 (failed), 4 (inconclusive).
  [[nodiscard]] int exit_code() const;
};

[[nodiscard]] std::string suite_json(const SuiteReport& report);
// A line each, in full what did not pass, a closing line.
[[nodiscard]] std::string suite_text(const SuiteReport& report);

// A test suite for each schedule: one test case for the schedule, which decides, and one a run. A run that went
// otherwise than most is a failure only when the schedule's rate is.
[[nodiscard]] std::string replay_junit(const ReplayReport& report);
[[nodiscard]] std::string suite_junit(const SuiteReport& report);

// Test Anything Protocol, version 14: a line each; what is flaky is marked TODO, which does not count as a failure.
[[nodiscard]] std::string replay_tap(const ReplayReport& report);
[[nodiscard]] std::string suite_tap(const SuiteReport& report);

// What replay_json() prints.
[[nodiscard]] Json replay_object(const ReplayReport& report);

}  // namespace rose::report
