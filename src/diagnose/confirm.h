// Runs of a schedule that reproduced the bug: it is narrowed down to the faults that count, and tested against the
// target rate and against runs without faults. Private to diagnose.
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

  // Reduces many faults, or many calls, to those that matter: by halves, one run for each. `doubts`: a part that seems
  // to reproduce another failure is refined only if no part reproduces this one.
  [[nodiscard]] Result<void> narrow(Lead& lead, bool doubts);
  // Is it worth being minimised? Fresh runs, until RateTest::screening() knows; the run in which it was found does not
  // count. `may_wait`: where there is little hope left, it waits, and the rest follows when it is screened again.
  [[nodiscard]] Result<void> screen(Lead& lead, bool may_wait);
  // Does it reach the target? At most `most` fresh runs, until the sequential test knows; `lead` has none yet.
  // `strict`: something surer than what was found is looked for, so a few misses end it.
  [[nodiscard]] Result<void> test(Lead& lead, int most, bool strict);
  // How many runs are left from the first reproduction to the result.
  [[nodiscard]] int left_for(const Lead& lead) const;
  // How likely it reaches the target, after what its test showed.
  [[nodiscard]] double hope(const Lead& lead) const;
  // The number of schedules that were tested.
  [[nodiscard]] int tests() const { return tests_; }

  // Further runs of it.
  [[nodiscard]] Result<void> repeat(Lead& lead, int runs, const std::string& doing, schedule::Series& series);
  // `more` further runs of it, and what comes then.
  template <class Then>
  void expect_more(const Lead& lead, int more, Then then) {
    const std::size_t room = lab_.room();
    if (room == 0) return;
    std::vector<Schedule> next(std::min(room, static_cast<std::size_t>(std::max(0, more))), lead.schedule);
    if (next.size() < room) then(room, next);
    lab_.expect(std::move(next));
  }
  // How it will be made simpler, where each idea takes so many runs that hit; then its rate is measured.
  void forecast_end(const Simplifier& simplifier, const schedule::Tally& found, std::size_t room,
                    std::vector<Schedule>& next) const;

 private:
  // `other`: parts that show another failure don't count, and the first of them is kept there; nullptr: they count.
  [[nodiscard]] Result<void> narrow_down(Lead& lead, std::optional<Lead>* other);
  [[nodiscard]] Result<void> compare_with_controls(Lead& lead);
  // Runs until `test` has an answer, the runs cannot be judged, or the lead waits.
  [[nodiscard]] Result<void> run_until_known(Lead& lead, const schedule::RateTest& test, bool strict, bool may_wait);

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  Lab& lab_;
  Diagnosis& d_;
  int tests_ = 0;
  int tickets_ = 0;
};

}  // namespace rose::diagnose
