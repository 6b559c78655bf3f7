// Makes the runs of a search: keeps the budget, the record of trials, and the control runs; reports the progress.
// Private to diagnose.
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

class Lab {
 public:
  Lab(const Inputs& inputs, Runner& runner, const std::function<void(const Progress&)>& progress, Diagnosis& diagnosis)
      : inputs_(inputs), runner_(runner), progress_(progress), d_(diagnosis) {}

  struct Entry {
    std::size_t index = 0;  // into Diagnosis::tried
    bool fresh = true;      // it was not tried before
  };
  [[nodiscard]] Entry enter(const schedule::Schedule& schedule, int level, std::string why);

  struct Made {
    bool armed = true;  // false: the deployment cannot run this schedule, and no run was made
    schedule::RunResult result;
  };
  // One run of each, in parallel; no more than left(). Errors end the diagnosis.
  [[nodiscard]] Result<std::vector<Made>> run(const std::vector<std::size_t>& tried, const std::string& doing);
  // The same, repeated once if the oracle could not decide, unless another of them reproduces the bug, or it is listed
  // in `once`.
  [[nodiscard]] Result<std::vector<Made>> run_judged(const std::vector<std::size_t>& tried, const std::string& doing,
                                                     const std::set<std::size_t>& once);

  [[nodiscard]] bool knows(const schedule::Schedule& schedule) const { return knows(schedule::fingerprint(schedule)); }
  [[nodiscard]] bool knows(const std::string& fingerprint) const { return known_.contains(fingerprint); }
  // For runners that make runs ahead: how many schedules they can use, and the schedules that will probably be
  // requested after the next run().
  [[nodiscard]] std::size_t room() const {
    return static_cast<std::size_t>(std::max(0, std::min(runner_.room(), left())));
  }
  void expect(std::vector<schedule::Schedule> next) { runner_.expect(std::move(next)); }

  [[nodiscard]] int left() const { return inputs_.config->diagnose.max_runs - d_.runs; }
  [[nodiscard]] int jobs() const { return std::max(1, inputs_.config->diagnose.jobs.value_or(runner_.side_by_side())); }
  // How long a run of the schedule takes relative to the mean of all, rounded to halves so that noise does not decide
  // an order.
  [[nodiscard]] double cost(const schedule::Schedule& schedule) const;

  [[nodiscard]] double seconds_a_run() const {
    return all_seconds_.second == 0 ? 0 : all_seconds_.first / all_seconds_.second;
  }

  // `tried` has reproduced the bug. Only the first call has an effect. The next progress reports it before its rate is
  // known, because an engineer who waits needs the schedule early.
  void reproduced(std::size_t tried) {
    if (!d_.first) d_.first = tried;
  }

  // Further values for the progress report.
  int level = 1;
  double best_rate = 0;
  double testing_rate = 0;  // the rate so far of the schedule under test
  int runs_until = 0;       // made at most; 0: as many as are left
  bool found = false;

 private:
  [[nodiscard]] Result<Made> take(std::size_t tried, Result<schedule::RunResult> made);
  void report_progress(const std::string& doing);

  const Inputs& inputs_;
  Runner& runner_;
  const std::function<void(const Progress&)>& progress_;
  Diagnosis& d_;
  std::map<std::string, std::size_t> known_;  // by fingerprint: index into d_.tried
  // by the ids of the faults: total seconds, and the number of runs
  std::map<std::string, std::pair<double, int>> seconds_;
  std::pair<double, int> all_seconds_;
  bool armed_any_ = false;
  int unarmable_in_a_row_ = 0;
};

}  // namespace rose::diagnose
