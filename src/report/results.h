// The results of commands as JSON, JUnit and text. page.h makes the HTML form.
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

// In how many runs a fault of a schedule was planned, fired, and had an effect.
struct FaultCount {
  std::string id;
  int requested = 0;
  int fired = 0;
  int effective = 0;
  bool optional = false;
  std::string why_not{};    // the reason in the last run in which the fault did not fire
  std::string no_effect{};  // the reason in the last run in which the fault fired without an effect

  // The reason why the fault was not effective: "no packet was stopped", "it did not fire: ...". "" if it was effective
  // in all runs.
  [[nodiscard]] std::string reason() const;
};

// The result of repeated runs of one schedule. It does not contain the runs' traces.
struct ReplayReport {
  std::string name;  // name of the deployment
  schedule::Schedule schedule;
  std::string schedule_path, config_path;
  schedule::Verdict verdict = schedule::Verdict::inconclusive;
  std::string reason;  // the reason for the verdict, in one sentence
  double target_rate = 0.8;
  bool expect_fixed = false;
  std::optional<double> quarantine;  // a rate from this value up to the target is reported, but is no failure
  schedule::Tally tally;
  double seconds = 0;
  std::int64_t began_ns = 0;  // wall clock; 0: unknown
  std::string backend;
  std::vector<schedule::RunResult> runs;
  std::vector<std::string> alone;      // commands that replay single nodes of recorded_run() alone
  std::vector<std::string> workloads;  // for each run, how the workload ended
  int failed_workloads = 0;            // number of runs whose workload ended by itself with another status than 0
  bool work_seen = false;              // in some run, the workload exchanged data with a node
  std::optional<profile::WorkloadUse>
      usual_work;                      // what the workload does in runs without faults; nothing: no profile contains it
  std::string config_directory;        // the folder in which rose would search for a profile
  std::vector<std::string> unchecked;  // what was not checked, and how it could be checked

  [[nodiscard]] std::vector<FaultCount> faults() const;
  // The last run that reproduced the bug and whose recordings were kept. If there is none, the last run with
  // recordings; null if there is no such run either.
  [[nodiscard]] const schedule::RunResult* recorded_run() const;
  // True if the verdict is the wanted one: `reproduced`, or `not-reproduced` if a fix is expected.
  [[nodiscard]] bool passed() const {
    return verdict != schedule::Verdict::inconclusive && (verdict == schedule::Verdict::reproduced) != expect_fixed;
  }
  // True if the bug was reproduced at a rate that is too low, but excused by `quarantine`.
  [[nodiscard]] bool flaky() const {
    return quarantine && !expect_fixed && verdict == schedule::Verdict::not_reproduced && tally.reproduced > 0 &&
           tally.rate() >= *quarantine;
  }
};

// Determines the verdict of all runs, and its reason. The verdict is inconclusive if fewer than half of the runs are
// conclusive. With `expect_fixed`, if no run reproduced the bug, the verdict is also inconclusive in these cases: some
// run was inconclusive; no fault was effective in any run; the schedule has neither faults nor an order; the workload
// failed in every run, and either no profile shows that it works without faults, or it exchanged no data with the
// nodes.
void conclude(ReplayReport& report);

[[nodiscard]] std::string replay_json(const ReplayReport& report);
[[nodiscard]] std::string replay_text(const ReplayReport& report);

// One row about the faults of a run: when a condition was met; or when and where the fault fired, or why it did not
// fire.
struct FaultRow {
  enum class Kind { fault, condition, fired, frame, effective, ended };
  Kind kind = Kind::fault;
  std::string what;  // the id of the fault, or the condition
  std::string at;    // "1.234 s", "0.2 s before the workload", "never"
  std::string node, thread;
  std::string seen;  // how many matches were seen: "2 of 3", "5 calls"
  std::string detail;
};
[[nodiscard]] std::vector<FaultRow> fault_rows(const schedule::Schedule& schedule, const schedule::RunResult& run);
// The stack of the first affected thread, in short, innermost frame first, beginning with the program's own code:
// "Store::append(int) at store.cc:30". Then the number of further frames, and in parentheses why frames or names are
// missing. Empty if there is no stack.
[[nodiscard]] std::vector<std::string> frames_in_short(const schedule::FaultOutcome& outcome);
// The rows as an aligned table.
[[nodiscard]] std::string fault_table(const schedule::Schedule& schedule, const schedule::RunResult& run);

// A log that was read for the plan.
struct PlanFile {
  std::string file;
  std::uint64_t messages = 0, timed = 0;
  std::string node;  // "": not known
};
[[nodiscard]] std::string plan_json(const diagnose::Plan& plan, const std::vector<PlanFile>& files = {});
[[nodiscard]] std::string plan_text(const diagnose::Plan& plan, bool only_logs = false);

struct DiagnosisReport {
  const diagnose::Diagnosis* diagnosis = nullptr;
  std::string name;           // name of the deployment
  std::string schedule_path;  // path of the found schedule; "" if there is none
  std::string config_path, profile_path;
  std::string page;  // path of the HTML report; "" without --report
  double target_rate = 0.8;
  std::uint64_t seed = 0;
  double seconds = 0;
  // time since the diagnosis began; nothing: no run reproduced the bug
  std::optional<double> first_reproduction_seconds;
  int jobs = 1;                        // the largest number of parallel runs
  std::string backend;                 // how syscall faults were injected
  bool recorded = false;               // some nodes record themselves
  std::vector<std::string> kept;       // the directories of runs that were kept
  std::vector<logs::SideBySide> logs;  // the logs of the failure beside those of the run that the page shows
};
[[nodiscard]] std::string diagnosis_json(const DiagnosisReport& report);
[[nodiscard]] std::string diagnosis_text(const DiagnosisReport& report);

struct NextStep {
  std::string command;  // the command as it is typed into a shell; "" if there is none
  std::string what;
};
[[nodiscard]] std::vector<NextStep> next_steps(const DiagnosisReport& report);

}  // namespace rose::report
