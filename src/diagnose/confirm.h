// Handles a schedule that reproduced the bug: reduces it to the faults that matter, and tests it against the target
// rate and against control runs. Private to diagnose.
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

  // Reduces many faults, or many calls, to those that matter, by bisection with one run for each half. `doubts`: a part
  // that seems to reproduce another failure is refined only if no part reproduces this one.
  [[nodiscard]] Result<void> narrow(Lead& lead, bool doubts);
  // Is it worth minimising? Makes fresh runs until RateTest::screening() decides; the run that found it does not count.
  // `may_wait`: a lead with little hope is put aside, and screening continues when it is selected again.
  [[nodiscard]] Result<void> screen(Lead& lead, bool may_wait);
  // Does it reach the target? Makes at most `most` fresh runs until the sequential test decides; `lead` has none yet.
  // `strict`: the search is looking for something more reliable than it already has, so a few misses end the test.
  [[nodiscard]] Result<void> test(Lead& lead, int most, bool strict);
  // How many runs are left from the first reproduction to the result.
  [[nodiscard]] int left_for(const Lead& lead) const;
  // The probability that it reaches the target, given the results of its test.
  [[nodiscard]] double chance_of_target(const Lead& lead) const;
  // The number of schedules that were tested.
  [[nodiscard]] int tests() const { return tests_; }

  // Further runs of it.
  [[nodiscard]] Result<void> repeat(Lead& lead, int runs, const std::string& doing, schedule::Series& series);
  // Makes `more` further runs of it, then calls `then`.
  template <class Then>
  void expect_more(const Lead& lead, int more, Then then) {
    const std::size_t room = lab_.room();
    if (room == 0) return;
    std::vector<Schedule> next(std::min(room, static_cast<std::size_t>(std::max(0, more))), lead.schedule);
    if (next.size() < room) then(room, next);
    lab_.expect(std::move(next));
  }
  // Forecasts the minimisation, in which each idea takes this many runs that hit, and then the runs that measure the
  // rate.
  void forecast_end(const Simplifier& simplifier, const schedule::Tally& found, std::size_t room,
                    std::vector<Schedule>& next) const;

 private:
  // `other`: parts that reproduce another failure do not count, and the first of them is stored there; nullptr: they
  // count.
  [[nodiscard]] Result<void> narrow_down(Lead& lead, std::optional<Lead>* other);
  [[nodiscard]] Result<void> compare_with_controls(Lead& lead);
  // Makes runs until `test` decides, the runs cannot be judged, or the lead is put aside.
  [[nodiscard]] Result<void> run_until_known(Lead& lead, const schedule::RateTest& test, bool strict, bool may_wait);

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  Lab& lab_;
  Diagnosis& d_;
  int tests_ = 0;
  int tickets_ = 0;
};

}  // namespace rose::diagnose
