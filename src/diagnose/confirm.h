// Confirms a schedule that reproduced the bug: reduces it to the faults that matter, and compares its replay rate with
// the target rate and with control runs. Private to diagnose.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/lab.h"
#include "diagnose/lead.h"
#include "diagnose/simplify.h"

namespace rose::diagnose {

class Confirmation {
 public:
  Confirmation(const Inputs& inputs, Lab& lab, Diagnosis& diagnosis)
      : inputs_(inputs), options_(inputs.config->diagnose), lab_(lab), d_(diagnosis) {}

  // Reduces many faults, or many calls, to those that matter, by bisection. Each part that is tried gets one run. Runs
  // that reproduced the bug since the last miss are later counted by screen(). `doubts`: a part may reproduce another
  // failure than that of the incident (resembles_incident()); such a part is reduced further only if no other part
  // reproduces the failure of the incident.
  [[nodiscard]] Result<void> narrow(Lead& lead, bool doubts);
  // Decides whether the schedule is worth minimising: makes further runs until RateTest::screening() decides. The run
  // in which the schedule first reproduced the bug does not count, because the schedule was selected for the outcome of
  // that run. `may_wait`: a lead that will hardly reach the target is put aside, and its screening continues when it is
  // selected again.
  [[nodiscard]] Result<void> screen(Lead& lead, bool may_wait);
  // Decides whether the schedule reaches the target: makes at most `most` fresh runs until the sequential test decides.
  // `lead` has no runs yet. `strict`: a schedule that reaches the target rate is already known, so more than
  // kReliableMisses misses end the test.
  [[nodiscard]] Result<void> test(Lead& lead, int most, bool strict);
  // The number of runs that may still be made before the result is reported: what is left of kMostAfterFirst since the
  // lead first reproduced the bug, but at most what max_runs leaves.
  [[nodiscard]] int left_for(const Lead& lead) const;
  // The probability that the schedule's rate reaches the target, given the results of its test.
  [[nodiscard]] double chance_of_target(const Lead& lead) const;
  // The number of schedules that were tested.
  [[nodiscard]] int tests() const { return tests_; }

  // Makes further runs of the schedule. `doing`: for the progress report. `series` receives the outcomes. `longest_ns`:
  // see Runner::wait_at_most().
  [[nodiscard]] Result<void> repeat(Lead& lead, int runs, const std::string& doing, schedule::Series& series,
                                    std::int64_t longest_ns = 0);
  // Announces `more` further runs of the schedule to a runner that makes runs ahead of time. `then` adds other runs if
  // there is room left.
  template <class Then>
  void expect_more(const Lead& lead, int more, Then then) {
    const std::size_t room = lab_.room();
    if (room == 0) return;
    std::vector<Schedule> next(std::min(room, static_cast<std::size_t>(std::max(0, more))), lead.schedule);
    if (next.size() < room) then(room, next);
    lab_.expect(std::move(next));
  }
  // Adds to `next` the runs that minimisation and the final test will probably make, as far as `room` allows.
  void forecast_end(const Simplifier& simplifier, const schedule::Tally& found, std::size_t room,
                    std::vector<Schedule>& next) const;

 private:
  // `other`: receives the first part that reproduces another failure; such parts do not count as reproductions.
  // nullptr: all reproductions count.
  [[nodiscard]] Result<void> narrow_down(Lead& lead, std::optional<Lead>* other);
  [[nodiscard]] Result<void> compare_with_controls(Lead& lead);
  // Makes runs until `test` decides, too many runs are inconclusive, or the lead is put aside.
  [[nodiscard]] Result<void> run_until_known(Lead& lead, const schedule::RateTest& test, bool strict, bool may_wait);

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  Lab& lab_;
  Diagnosis& d_;
  int tests_ = 0;
  int tickets_ = 0;
};

}  // namespace rose::diagnose
