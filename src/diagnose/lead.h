// A lead: a schedule that reproduced the bug, and the results of its further runs. Private to diagnose.
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
  int schedules = 0;                         // number of schedules tried until it reproduced the bug
  std::size_t tried = 0;                     // index into Diagnosis::tried
  schedule::Tally tally;                     // outcomes of the runs that screened or tested it
  schedule::Series series;                   // the outcomes of the same runs, one by one
  int number = 0;                            // ordinal among the screened schedules; 0: not screened
  std::pair<double, double> interval{0, 1};  // confidence interval of its rate, set by the test
  int first_run = 0;                         // number of the run that first reproduced the bug
  bool promising = false;                    // passed the screening, so it is worth minimising and testing
  bool accepted = false;                     // passed the test: it reaches the target rate
  bool waits = false;                        // its screening is put aside, because it will hardly reach the target
  std::set<std::string> fired;               // faults that were effective in a run that reproduced the bug
  std::set<std::string> absent_in_hits;      // faults without effect in a run that reproduced the bug
  std::set<std::string> absent_in_misses;    // faults without effect in a run that did not reproduce it

  // Updates the sets of faults by the outcome of one of its runs.
  void remember(const RunResult& result) {
    const bool reproduced = result.verdict == schedule::Verdict::reproduced;
    for (const FaultOutcome& outcome : result.faults) {
      if (outcome.effective() && reproduced) fired.insert(outcome.id);
      // Alternatives of a group are left out: only one of them fires in each run.
      const Fault* fault = schedule.find(outcome.id);
      if (!outcome.effective() && fault != nullptr && fault->group.empty())
        (reproduced ? absent_in_hits : absent_in_misses).insert(outcome.id);
    }
  }
  // Replaces the recorded runs, which screened or tested the lead, by `runs`.
  void count(schedule::Series runs) {
    series = std::move(runs);
    tally = series.tally();
  }
  // A lead for another schedule, which is at `index` in Diagnosis::tried. It keeps the level and the first reproduction
  // of this lead, and has no runs yet.
  [[nodiscard]] Lead as(Schedule other, std::size_t index) const {
    Lead lead;
    lead.schedule = std::move(other);
    lead.level = level;
    lead.schedules = schedules;
    lead.first_run = first_run;
    lead.tried = index;
    return lead;
  }
  // The faults that had no effect in at least one run that reproduced the bug, so the other faults are sufficient.
  // Leaves out faults that also had no effect in a run that did not reproduce the bug: their absence may be the reason
  // for the miss.
  [[nodiscard]] std::set<std::string> unneeded() const {
    std::set<std::string> all;
    for (const std::string& id : absent_in_hits)
      if (!absent_in_misses.contains(id)) all.insert(id);
    return all;
  }
};

// True if `a` reproduces the bug more reliably than `b`: by the lower end of the confidence interval, then by rate.
inline bool better(const Lead& a, const Lead& b) {
  const auto [a_low, a_high] = a.tally.interval();
  const auto [b_low, b_high] = b.tally.interval();
  return a_low != b_low ? a_low > b_low : a.tally.rate() > b.tally.rate();
}

}  // namespace rose::diagnose
