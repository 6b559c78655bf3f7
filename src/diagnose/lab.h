// Makes the runs of a search, counts them against the budget, records trials and control runs, and reports the
// progress. Private to diagnose.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

// Adds to `tried` the observations of a run in which the oracle recognised the bug.
void note_hit(Tried& tried, const schedule::RunResult& result);

class Lab {
 public:
  Lab(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress, Diagnosis& diagnosis)
      : inputs_(inputs), runner_(runner), progress_(progress), d_(diagnosis) {}

  struct Entry {
    std::size_t index = 0;  // index into Diagnosis::tried
    bool fresh = true;      // no run of this schedule has been made yet
  };
  // Adds a schedule to the record, or finds it there. `why`: for people.
  [[nodiscard]] Entry enter(const schedule::Schedule& schedule, int level, std::string why);

  struct Made {
    bool armed = true;  // false: the deployment cannot arm this schedule, so no run was made
    schedule::RunResult result;
  };
  // Makes one run of each schedule in `tried` (indexes into Diagnosis::tried), in parallel. The caller passes at most
  // left() schedules. Errors end the diagnosis. `doing`: for the progress report. `decides`: see Runner::run_all();
  // `longest_ns`: see Runner::wait_at_most().
  [[nodiscard]] Result<std::vector<Made>> run(const std::vector<std::size_t>& tried, const std::string& doing,
                                              const Decides& decides = {}, std::int64_t longest_ns = 0);
  // Like run(), but repeats a run once if its oracle could not decide. Runs of schedules in `once` are not repeated.
  // Nothing is repeated if one of the runs reproduced the bug, because the caller examines that run first.
  [[nodiscard]] Result<std::vector<Made>> run_judged(const std::vector<std::size_t>& tried, const std::string& doing,
                                                     const std::set<std::size_t>& once, const Decides& decides);

  [[nodiscard]] bool knows(const schedule::Schedule& schedule) const { return knows(schedule::fingerprint(schedule)); }
  [[nodiscard]] bool knows(const std::string& fingerprint) const {
    const auto known = known_.find(fingerprint);
    return known != known_.end() && !not_run_.contains(known->second);
  }
  // For runners that make runs ahead of time: room() is the number of schedules that they can use, and expect()
  // announces the schedules that will probably be requested after the next run().
  [[nodiscard]] std::size_t room() const {
    if (inputs_.without.contains("ahead")) return 0;
    return static_cast<std::size_t>(std::max(0, std::min(runner_.room(), left())));
  }
  void expect(std::vector<schedule::Schedule> next) { runner_.expect(std::move(next)); }

  [[nodiscard]] int left() const { return inputs_.config->diagnose.max_runs - d_.runs; }
  [[nodiscard]] int jobs() const { return std::max(1, inputs_.config->diagnose.jobs.value_or(runner_.side_by_side())); }
  // The number of runs of one schedule to request at once; at least jobs().
  [[nodiscard]] int repeats(const schedule::Schedule& schedule) const {
    return std::max(1, inputs_.config->diagnose.jobs.value_or(runner_.repeats(schedule)));
  }
  // The duration of a run of the schedule relative to the mean of all runs, rounded to halves so that noise does not
  // decide the order of trials; at least 1, and 1 for schedules that were not run.
  [[nodiscard]] double cost(const schedule::Schedule& schedule) const;

  // The mean duration of a run in seconds; 0: no run was made.
  [[nodiscard]] double seconds_a_run() const {
    return all_seconds_.second == 0 ? 0 : all_seconds_.first / all_seconds_.second;
  }

  // Records that `tried` was the first to reproduce the bug; later calls have no effect. The next progress report shows
  // the schedule, although its rate is not known yet, because an engineer who waits needs it early.
  void reproduced(std::size_t tried) {
    if (!d_.first) d_.first = tried;
  }

  // Further values for progress reports, set by the callers.
  int level = 1;
  double best_rate = 0;
  double testing_rate = 0;  // replay rate so far of the schedule that is being tested; 0: none
  int runs_until = 0;       // limit of Diagnosis::runs for the current phase; 0: max_runs
  bool found = false;

 private:
  [[nodiscard]] Result<Made> take(std::size_t tried, Result<schedule::RunResult> made);
  void report_progress(const std::string& doing);

  const Inputs& inputs_;
  Runner& runner_;
  const std::function<void(const Progress&)>& progress_;
  Diagnosis& d_;
  std::map<std::string, std::size_t> known_;  // by fingerprint: index into d_.tried
  std::set<std::size_t> not_run_;             // indexes into d_.tried of schedules whose only run was stopped
  // by fault ids (ids_of()): total seconds and number of runs
  std::map<std::string, std::pair<double, int>> seconds_;
  std::pair<double, int> all_seconds_;
  bool armed_any_ = false;
  int unarmable_in_a_row_ = 0;
};

}  // namespace rose::diagnose
