// Results of commands as JSON, JUnit and text. page.h creates the HTML form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "logs/side_by_side.h"
#include "profile/profile.h"
#include "schedule/outcome.h"
#include "schedule/rate.h"
#include "schedule/schedule.h"

namespace rose::report {

// How often a fault of a schedule was planned, fired and had an effect, in runs.
struct FaultCount {
  std::string id;
  int requested = 0;
  int fired = 0;
  int effective = 0;
  bool optional = false;
  std::string why_not{};    // of the last run in which it did not fire
  std::string no_effect{};  // of the last run in which it fired without an effect

  // Why it was not effective: "no packet was stopped", "it did not fire: ..."; "" if it was effective in all runs.
  [[nodiscard]] std::string reason() const;
};

// The result of repeated runs of one schedule, without the runs' traces.
struct ReplayReport {
  std::string name;  // of the deployment
  schedule::Schedule schedule;
  std::string schedule_path, config_path;
  schedule::Verdict verdict = schedule::Verdict::inconclusive;
  std::string reason;  // one sentence
  double target_rate = 0.8;
  bool expect_fixed = false;
  std::optional<double> quarantine;  // rates from here up to the target are reported but do not fail
  schedule::Tally tally;
  double seconds = 0;
  std::int64_t began_ns = 0;  // wall clock; 0: unknown
  std::string backend;
  std::vector<schedule::RunResult> runs;
  std::vector<std::string> alone;      // commands that replay single nodes of recorded_run() alone
  std::vector<std::string> workloads;  // of each run: how the workload ended
  int failed_workloads = 0;            // runs whose workload ended by itself with another status than 0
  bool work_seen = false;              // the workload exchanged data with a node in some run
  std::optional<profile::WorkloadUse>
      usual_work;                      // what the workload does in fault-free runs; nothing: there is no profile of it
  std::string config_directory;        // where a profile would be looked for
  std::vector<std::string> unchecked;  // what was not checked, and how it could be

  [[nodiscard]] std::vector<FaultCount> faults() const;
  // The last run with kept recordings that reproduced the bug, else the last run with recordings; null if there is
  // none.
  [[nodiscard]] const schedule::RunResult* recorded_run() const;
  // True if the verdict is what `expect` requires.
  [[nodiscard]] bool passed() const {
    return verdict != schedule::Verdict::inconclusive && (verdict == schedule::Verdict::reproduced) != expect_fixed;
  }
  // Reproduces the bug at a rate that is too low but excused by `quarantine`.
  [[nodiscard]] bool flaky() const {
    return quarantine && !expect_fixed && verdict == schedule::Verdict::not_reproduced && tally.reproduced > 0 &&
           tally.rate() >= *quarantine;
  }
};

// Sets the verdict of all runs and its reason. It is inconclusive if fewer than half of the runs are conclusive. With
// `expect_fixed` it may also be inconclusive if no run reproduced the bug: because of an inconclusive run, because no
// fault was effective in any run, or because the workload failed each time although no profile shows that it works
// without faults.
void conclude(ReplayReport& report);

[[nodiscard]] std::string replay_json(const ReplayReport& report);
[[nodiscard]] std::string replay_text(const ReplayReport& report);

// One run's faults row by row: when each condition was met, and when and where the fault fired, or why it did not.
struct FaultRow {
  enum class Kind { fault, condition, fired, frame, effective, ended };
  Kind kind = Kind::fault;
  std::string what;  // the fault's id or the condition
  std::string at;    // "1.234 s", "0.2 s before the workload", "never"
  std::string node, thread;
  std::string seen;  // "2 of 3", "5 calls"
  std::string detail;
};
[[nodiscard]] std::vector<FaultRow> fault_rows(const schedule::Schedule& schedule, const schedule::RunResult& run);
// The stack of the first affected thread, innermost frame first, starting at the program's own code and shortened:
// "Store::append(int) at store.cc:30". Then the number of other threads, or why there is no stack.
[[nodiscard]] std::vector<std::string> frames_in_short(const schedule::FaultOutcome& outcome);
// The rows as an aligned table.
[[nodiscard]] std::string fault_table(const schedule::Schedule& schedule, const schedule::RunResult& run);

// A log that was read for the plan.
struct PlanFile {
  std::string file;
  std::uint64_t messages = 0, timed = 0;
  std::string node;  // "" not known
};
[[nodiscard]] std::string plan_json(const diagnose::Plan& plan, const std::vector<PlanFile>& files = {});
[[nodiscard]] std::string plan_text(const diagnose::Plan& plan, bool only_logs = false);

struct DiagnosisReport {
  const diagnose::Diagnosis* diagnosis = nullptr;
  std::string name;           // of the deployment
  std::string schedule_path;  // path of the found schedule; "" if there is none
  std::string config_path, profile_path;
  std::string page;  // the HTML report; "" without --report
  double target_rate = 0.8;
  std::uint64_t seed = 0;
  double seconds = 0;
  std::optional<double> first_reproduction_seconds;  // since the diagnosis began; nothing: no run reproduced the bug
  int jobs = 1;                                      // the largest number of parallel runs
  std::string backend;                               // used for syscall faults
  bool recorded = false;                             // nodes record themselves
  std::vector<std::string> kept;                     // directories of runs
  std::vector<logs::SideBySide> logs;                // the failure's logs beside those of the run on the page
};
[[nodiscard]] std::string diagnosis_json(const DiagnosisReport& report);
[[nodiscard]] std::string diagnosis_text(const DiagnosisReport& report);

struct NextStep {
  std::string command;  // as typed into a shell; "" if there is none
  std::string what;
};
[[nodiscard]] std::vector<NextStep> next_steps(const DiagnosisReport& report);

}  // namespace rose::report
