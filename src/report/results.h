// Results of commands, for machines (DESIGN 3.5) and for people.
#pragma once

#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "schedule/outcome.h"
#include "schedule/rate.h"
#include "schedule/schedule.h"

namespace rose::report {

// How often one fault of a schedule was asked for and fired, in runs.
struct FaultCount {
  std::string id;
  int requested = 0;
  int fired = 0;
  std::string why_not;  // of the last run in which it did not fire
};

// Everything about repeated runs of one schedule, without the runs' traces.
struct ReplayReport {
  std::string name;                // of the deployment
  schedule::Schedule schedule;
  schedule::Verdict verdict = schedule::Verdict::inconclusive;
  std::string reason;              // one sentence
  double target_rate = 0.8;
  bool expect_fixed = false;
  schedule::Tally tally;
  double seconds = 0;
  std::string backend;
  std::vector<schedule::RunResult> runs;

  [[nodiscard]] std::vector<FaultCount> faults() const;
};

[[nodiscard]] std::string replay_json(const ReplayReport& report);
[[nodiscard]] std::string replay_text(const ReplayReport& report);
// One JUnit test case a run.
[[nodiscard]] std::string replay_junit(const ReplayReport& report);
// One run's faults as an aligned table: when each condition was met, when the fault fired, where.
[[nodiscard]] std::string fault_table(const schedule::Schedule& schedule, const schedule::RunResult& run);

[[nodiscard]] std::string plan_json(const diagnose::Plan& plan);
[[nodiscard]] std::string plan_text(const diagnose::Plan& plan);

// `schedule_path`: where the found schedule was written; "" when there is none.
[[nodiscard]] std::string diagnosis_json(const diagnose::Diagnosis& diagnosis, const std::string& schedule_path,
                                         double seconds);
[[nodiscard]] std::string diagnosis_text(const diagnose::Diagnosis& diagnosis, const std::string& schedule_path,
                                         double seconds);

}  // namespace rose::report
