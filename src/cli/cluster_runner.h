// Makes the runs of a search in the test deployment: on this machine, several in parallel, or on workers. With
// --resume, recorded runs of a schedule are returned first. The search is deterministic: if its requests get the same
// results, it makes the same further requests, so a search continues where it was interrupted. Private to cli.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/log_evidence.h"
#include "diagnose/diagnose.h"
#include "engine/ahead.h"
#include "replay/repeat.h"
#include "replay/side_by_side.h"

namespace rose::cli {

class ClusterRunner final : public diagnose::Runner {
 public:
  // All references must outlive it. `recorded`: the runs of the search that is resumed.
  ClusterRunner(const config::Config& config, const std::optional<profile::Profile>& profile, replay::RunStore& store,
                jvm::CodeBook& methods, bool allow_attached, std::vector<replay::RunStore::Recorded> recorded);

  Result<schedule::RunResult> run(const schedule::Schedule& schedule) override;
  std::vector<Result<schedule::RunResult>> run_all(const std::vector<const schedule::Schedule*>& schedules,
                                                   const schedule::Decides& decides) override;
  [[nodiscard]] int side_by_side() const override;
  // How many runs of this schedule to make in parallel: more than side_by_side() if its runs wait for a long time after
  // all faults were injected, because further runs can start meanwhile.
  [[nodiscard]] int repeats(const schedule::Schedule& schedule) const override;
  [[nodiscard]] int room() const override;
  void expect(std::vector<schedule::Schedule> next) override { expected_ = std::move(next); }
  // Applies only to runs on this machine. Runs on workers last until the workload ends.
  void wait_at_most(std::int64_t workload_ns) override { wait_at_most_ns_ = workload_ns; }

  // Determines by measurement how many runs are made in parallel. The runs of the measurement are the search's control
  // runs. Most of the measurement is postponed until the first schedule with faults has been run, because an engineer
  // waits for the first reproduction, and the first candidate of a plan is usually the cause. Until then, two runs are
  // made in parallel if two fit: the survey and that first schedule.
  [[nodiscard]] Result<void> choose_jobs(bool resumed);
  // The largest number of runs that were made in parallel so far.
  [[nodiscard]] int most_side_by_side() const;
  // From now on, workers make the runs.
  void work_with(engine::Ahead& ahead) { ahead_ = &ahead; }
  // From now on, the logs of each run are evaluated. `here`: the runs are made on this machine, so their logs are
  // watched while they are written.
  void look_with(LogEvidence& logs, bool here);
  // Supplies a run that was made before as the next run of this schedule.
  void give(const schedule::Schedule& schedule, schedule::RunResult result) {
    given_[schedule::fingerprint(schedule)].push_back({std::move(result)});
  }

  // The number of runs that were made ahead and not requested.
  [[nodiscard]] int made_for_nothing() const;
  // The number of recorded runs that the search did not request.
  [[nodiscard]] std::size_t unused() const;
  // The first run in which the schedule reproduced the bug, without its trace; nullptr if there is none.
  [[nodiscard]] const schedule::RunResult* reproducing(const schedule::Schedule& schedule) const;
  [[nodiscard]] const std::string& backend() const { return backend_; }
  // The time taken by those recorded runs that the search requested.
  [[nodiscard]] double recorded_seconds() const { return recorded_seconds_ / std::max(1, side_by_side()); }

 private:
  struct Given {
    schedule::RunResult result;
    bool guessed = false;   // made because the search would probably request it
    bool recorded = false;  // its trace is only in the record
  };

  // When a run decides a request, the runs in parallel to it are stopped. Whether one of them has already ended depends
  // on chance, which must not influence the search. Therefore the search receives the result of such a run only when it
  // requests the schedule again.
  void set_aside(const std::vector<const schedule::Schedule*>& schedules, const schedule::Decides& decides,
                 std::vector<Result<schedule::RunResult>>& results);
  void remember(const schedule::Schedule& schedule, schedule::RunResult& result);
  [[nodiscard]] schedule::Schedule without_faults() const;
  [[nodiscard]] Result<void> decide(int jobs);
  [[nodiscard]] Result<void> measure_in_parallel();
  void take_control_runs();
  // Sets proven_ to the number of these parallel runs if they kept their timing: all nodes were ready in time, and a
  // survey among the runs took no longer than a control run.
  void note_proof(const std::vector<const schedule::Schedule*>& batch, const std::vector<Result<replay::Run>>& runs);
  // True if runs that only wait may overlap with others, because compare_paths() found no common path.
  [[nodiscard]] bool may_overlap() const { return !config_.diagnose.jobs && apart_.value_or(false); }
  // Compares what this run wrote outside its folder with what the first control run wrote there.
  void compare_paths(const replay::Run& run);
  // Keeps a run that was made ahead until the search requests it. Many of these runs are never requested, so their
  // traces are kept only in the record. Without a record, the oldest runs are forgotten.
  void give_guessed(const schedule::Schedule& schedule, schedule::RunResult result);
  // At most `most` schedules that the search will probably request and that were not run yet.
  [[nodiscard]] std::vector<schedule::Schedule> to_make_ahead(std::size_t most);
  // Runs that were slowed down by parallel runs do not count. They are repeated with fewer runs in parallel. If the
  // machine can make more runs in parallel than were requested, it also makes runs that will probably be requested
  // next.
  [[nodiscard]] std::vector<Result<replay::Run>> run_here(const std::vector<const schedule::Schedule*>& todo,
                                                          const schedule::Decides& decides);
  [[nodiscard]] std::vector<Result<replay::Run>> run_elsewhere(const std::vector<const schedule::Schedule*>& todo);
  // Adds a run that a worker made to the record.
  [[nodiscard]] Result<replay::Run> take_in(const engine::Done& done, int number, const schedule::Schedule& schedule);
  [[nodiscard]] std::optional<schedule::RunResult> next_recorded(const schedule::Schedule& schedule);

  const config::Config& config_;
  replay::RunStore& store_;
  replay::RunOptions options_;
  engine::Ahead* ahead_ = nullptr;
  std::vector<schedule::Schedule> expected_;
  int next_number_ = 1;
  std::map<std::string, std::deque<schedule::RunResult>> recorded_;  // by the schedule's fingerprint
  std::map<std::string, std::deque<Given>> given_;                   // by fingerprint
  // if there is no record: the fingerprints of the latest runs in `given_` that were made ahead
  std::deque<std::string> guessed_;
  int forgotten_ = 0;
  std::map<std::string, schedule::RunResult> reproducing_;  // by fingerprint
  std::vector<replay::RunStore::Jobs> jobs_;                // with jobs = "auto"
  int handed_out_ = 0;                                      // number of runs that the search has received
  replay::TimingRange range_;
  // The measurement of the number of parallel runs, while its second part is postponed.
  std::optional<replay::SideBySide> to_measure_;
  bool tried_ = false;  // the search has received a run with faults other than those of a survey
  std::int64_t wait_at_most_ns_ = 0;
  std::optional<replay::ChangedOutside> outside_;  // what the first control run wrote outside its folder
  // True if compare_paths() found no path that two runs wrote outside their folders; nothing: no two runs were
  // compared. Also set to false when a run was too slow although the runs parallel to it should only have waited.
  std::optional<bool> apart_;
  int waiting_ = 1;  // number of runs that memory allows while most of them only wait
  int proven_ = 1;   // number of parallel runs that kept the timing of a control run
  std::string backend_;
  double recorded_seconds_ = 0;
};

}  // namespace rose::cli
