// Results of commands, for machines (--json, JUnit) and for people; as a page, see page.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"
#include "logs/beside.h"
#include "profile/profile.h"
#include "schedule/outcome.h"
#include "schedule/rate.h"
#include "schedule/schedule.h"

namespace rose::report {

// How often one fault of a schedule was asked for, fired and had an effect, in runs.
struct FaultCount {
  std::string id;
  int requested = 0;
  int fired = 0;
  int effective = 0;
  bool optional = false;
  std::string why_not{};    // of the last run in which it did not fire
  std::string no_effect{};  // of the last run in which it fired in vain

  // "no packet was stopped", "it did not fire: ..."; "" when it was effective in all runs.
  [[nodiscard]] std::string reason() const;
};

// Everything about repeated runs of one schedule, without the runs' traces.
struct ReplayReport {
  std::string name;  // of the deployment
  schedule::Schedule schedule;
  std::string schedule_path, config_path;
  schedule::Verdict verdict = schedule::Verdict::inconclusive;
  std::string reason;  // one sentence
  double target_rate = 0.8;
  bool expect_fixed = false;
  std::optional<double> quarantine;  // rates from here up to the target are told, not failed
  schedule::Tally tally;
  double seconds = 0;
  std::int64_t began_ns = 0;  // wall clock; 0: not known
  std::string backend;
  std::vector<schedule::RunResult> runs;
  std::vector<std::string> alone;      // commands that replay single nodes of recorded_run() alone
  std::vector<std::string> workloads;  // of each run: how the workload ended
  int failed_workloads = 0;            // runs whose workload ended by itself with another status than 0
  bool work_seen = false;              // in some run it exchanged data with a node
  std::optional<profile::WorkloadUse>
      usual_work;                      // what it does in fault-free runs; nothing: there is no profile of it
  std::string config_directory;        // where a profile would be looked for
  std::vector<std::string> unchecked;  // what was not checked, and how it could be

  [[nodiscard]] std::vector<FaultCount> faults() const;
  // Of those whose recordings were kept the last that reproduced, else the last; null: there is none.
  [[nodiscard]] const schedule::RunResult* recorded_run() const;
  // What `expect` asks for is so.
  [[nodiscard]] bool passed() const {
    return verdict != schedule::Verdict::inconclusive && (verdict == schedule::Verdict::reproduced) != expect_fixed;
  }
  // It reproduces, but too seldom to stop anybody's work.
  [[nodiscard]] bool flaky() const {
    return quarantine && !expect_fixed && verdict == schedule::Verdict::not_reproduced && tally.reproduced > 0 &&
           tally.rate() >= *quarantine;
  }
};

// Sets the verdict and its reason: what the runs say together. Fewer than half of them conclusive is no verdict. With
// `expect_fixed` also what speaks against it although no run showed the bug: a run that could not tell, no fault that
// was ever effective, a workload that failed each time and of which nothing says that it worked.
void conclude(ReplayReport& report);

[[nodiscard]] std::string replay_json(const ReplayReport& report);
[[nodiscard]] std::string replay_text(const ReplayReport& report);

// One run's faults, row by row: when each condition was met, when the fault fired, where; or why not.
struct FaultRow {
  enum class Kind { fault, condition, fired, frame, effective, ended };
  Kind kind = Kind::fault;
  std::string what;  // the fault's id, the condition in words
  std::string at;    // "1.234 s", "0.2 s before the workload", "never"
  std::string node, thread;
  std::string seen;  // "2 of 3", "5 calls"
  std::string detail;
};
[[nodiscard]] std::vector<FaultRow> fault_rows(const schedule::Schedule& schedule, const schedule::RunResult& run);
// Where the first of the threads was that the fault hit: "Store::append(int) at store.cc:30", innermost first, from the
// program's own code on, a few; and how many more there are, or why there are none.
[[nodiscard]] std::vector<std::string> frames_in_short(const schedule::FaultOutcome& outcome);
// The rows as an aligned table.
[[nodiscard]] std::string fault_table(const schedule::Schedule& schedule, const schedule::RunResult& run);

[[nodiscard]] std::string plan_json(const diagnose::Plan& plan);
[[nodiscard]] std::string plan_text(const diagnose::Plan& plan, bool only_logs = false);

struct DiagnosisReport {
  const diagnose::Diagnosis* diagnosis = nullptr;
  std::string name;           // of the deployment
  std::string schedule_path;  // where the found schedule was written; "" when there is none
  std::string config_path, profile_path;
  std::string page;  // the HTML report; "" without --report
  double target_rate = 0.8;
  std::uint64_t seed = 0;
  double seconds = 0;
  std::string backend;             // of syscall faults
  bool recorded = false;           // nodes record themselves
  std::vector<logs::Beside> logs;  // the failure's beside those of the run that the page shows
};
[[nodiscard]] std::string diagnosis_json(const DiagnosisReport& report);
[[nodiscard]] std::string diagnosis_text(const DiagnosisReport& report);

struct NextStep {
  std::string command;  // as typed into a shell; "" when there is none
  std::string what;
};
[[nodiscard]] std::vector<NextStep> next_steps(const DiagnosisReport& report);

}  // namespace rose::report
