// A schedule that reproduced the bug, and the results of its test. Private to diagnose.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "diagnose/words.h"
#include "schedule/rate.h"

namespace rose::diagnose {

struct Lead {
  Schedule schedule;
  int level = 1;
  int schedules = 0;                         // tried until then
  std::size_t tried = 0;                     // index into Diagnosis::tried
  schedule::Tally tally;                     // of the runs that screened or tested it
  schedule::Series series;                   // the same, run by run
  int number = 0;                            // which of those that were screened; 0: it was not
  std::pair<double, double> interval{0, 1};  // of its rate, after the test
  int first_run = 0;                         // number of the run that reproduced it first
  bool promising = false;                    // passed the screening: it is worth being minimised, and then tested
  bool accepted = false;
  bool waits = false;                      // its test is not over, and there is little hope for it: others come first
  std::set<std::string> fired;             // faults that were effective in runs that reproduced
  std::set<std::string> absent_in_hits;    // faults that were absent from one of the runs that reproduced it
  std::set<std::string> absent_in_misses;  // faults that were absent from a run that did not reproduce it

  void remember(const RunResult& result) {
    const bool reproduced = result.verdict == schedule::Verdict::reproduced;
    for (const FaultOutcome& outcome : result.faults) {
      if (outcome.effective() && reproduced) fired.insert(outcome.id);
      // Of alternatives, another one may fire next time.
      const Fault* fault = schedule.find(outcome.id);
      if (!outcome.effective() && fault != nullptr && fault->group.empty())
        (reproduced ? absent_in_hits : absent_in_misses).insert(outcome.id);
    }
  }
  // The same lead with another schedule, without any runs.
  [[nodiscard]] Lead as(Schedule other, std::size_t index) const {
    Lead lead;
    lead.schedule = std::move(other);
    lead.level = level;
    lead.schedules = schedules;
    lead.first_run = first_run;
    lead.tried = index;
    return lead;
  }
  // Faults whose absence never prevented the bug: runs have shown that the others are sufficient.
  [[nodiscard]] std::set<std::string> unneeded() const {
    std::set<std::string> all;
    for (const std::string& id : absent_in_hits)
      if (!absent_in_misses.contains(id)) all.insert(id);
    return all;
  }
};

// True if `a` reproduces the bug more reliably.
inline bool better(const Lead& a, const Lead& b) {
  const auto [a_low, a_high] = a.tally.interval();
  const auto [b_low, b_high] = b.tally.interval();
  return a_low != b_low ? a_low > b_low : a.tally.rate() > b.tally.rate();
}

}  // namespace rose::diagnose
