// Runs of a schedule that showed the bug: it is narrowed down to the faults that count, and tested against the target
// rate and against runs without faults. Inside this room.
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

  // Of many faults, or many calls, those that count: by halves, a run each. `doubts`: a part that shows another
  // failure, as far as the evidence tells, is gone on from only where no part shows this one.
  [[nodiscard]] Result<void> narrow(Lead& lead, bool doubts);
  // Fresh runs, until the sequential test knows; none of those in which it was found counts. `strict`: something surer
  // than what was accepted is looked for, so a few misses end it. `may_wait`: where there is little hope left, it
  // waits, and goes on from there when it is tested again.
  [[nodiscard]] Result<void> test(Lead& lead, bool strict, bool may_wait);
  // How likely it reaches the target, after what its test showed.
  [[nodiscard]] double hope(const Lead& lead) const;
  // So many schedules were tested.
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
  // How it will be made simpler, where each idea takes so many runs that hit; then its rate is told.
  void forecast_end(const Simplifier& simplifier, const schedule::Tally& found, std::size_t room,
                    std::vector<Schedule>& next) const;

 private:
  // `other`: parts that show another failure don't count, and the first of them is kept there; nullptr: they count.
  [[nodiscard]] Result<void> narrow_down(Lead& lead, std::optional<Lead>* other);
  [[nodiscard]] Result<void> compare_with_controls(Lead& lead);

  const Inputs& inputs_;
  const config::DiagnoseOptions& options_;
  Lab& lab_;
  Diagnosis& d_;
  int tests_ = 0;
};

}  // namespace rose::diagnose
