// Proposes simpler forms of a schedule that reproduces: fewer faults, fewer conditions, shorter, rounder, wider.
// Proposes one at a time, with as many changes at once as will probably hold, and continues according to the outcome of
// the runs. Makes no runs itself.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace rose::diagnose {

class Simplifier {
 public:
  struct Idea {
    schedule::Schedule schedule;
    std::string what;  // "without pause-n2", "cut-n1 lasts 6s instead of 12s"
    bool drops_faults = false;
  };

  // `fired`: ids of faults that fired in runs that reproduced. `faults_only`: only faults are removed. `certain`: ids
  // of faults that certainly happened in production. A certain fault is removed only after all uncertain ones, so that
  // what happened is not dropped in favour of what may have happened.
  Simplifier(schedule::Schedule schedule, const std::set<std::string>& fired, bool faults_only = false,
             std::set<std::string> certain = {});

  // The next simpler form of the schedule accepted last; nothing if there is none left. Then current() includes its
  // margins: a fault that was shortened as far as possible is made a third longer again, which needs no run, because
  // longer ones reproduced the bug before.
  [[nodiscard]] std::optional<Idea> next();
  // Whether the last proposal still reproduces the bug; if so, the next ones are based on it.
  void learn(bool reproduces);

  [[nodiscard]] const schedule::Schedule& current() const { return current_; }
  // The accepted changes, without removed faults.
  [[nodiscard]] const std::vector<std::string>& changes() const { return changes_; }

 private:
  struct Changed {
    schedule::Schedule schedule;
    std::string what;
  };
  using Change = std::function<std::optional<Changed>(const schedule::Schedule&)>;
  struct Step {
    Change change;
    bool repeats = false;  // tried again after it was accepted
    bool drops_faults = false;
    bool continues = false;     // the change accepted before was the first part of this one
    std::string shortens = {};  // the fault or group that is shortened
  };
  using Batch = std::vector<Step>;  // changes made together; bisected if they are refuted

  void plan_drops(const std::set<std::string>& fired);
  void plan_details();
  void leave_margins();
  // Applies the batch to the current schedule; steps that change nothing are dropped.
  [[nodiscard]] std::optional<Idea> apply(Batch& batch, std::vector<std::string>& words) const;

  schedule::Schedule current_;
  std::deque<Batch> batches_;
  Batch proposed_;
  std::vector<std::string> proposed_words_;
  schedule::Schedule proposed_schedule_;
  std::vector<std::string> changes_;
  std::set<std::string> certain_;
  bool faults_only_ = false;
  bool detailed_ = false;                            // plan_details() was called
  std::map<std::string, std::int64_t> original_ns_;  // the duration of a fault or group before it was shortened
  std::set<std::string> at_minimum_;                 // of those: shortened further, it did not reproduce the bug
};

// The schedule without one fault: faults that waited for it wait for its predecessors instead, for the same total time.
[[nodiscard]] schedule::Schedule without(const schedule::Schedule& schedule, const std::string& id);

}  // namespace rose::diagnose
