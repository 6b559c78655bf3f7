// Proposes simpler forms of a schedule that reproduces the bug: fewer faults, fewer conditions, lower counts, shorter
// durations, rounded times, more general paths. Proposes one form at a time. A form contains several changes at once if
// they will probably not matter. The outcome of its runs determines the next form. Makes no runs itself.
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
    bool drops_time = false;  // a fault no longer waits for a fixed time
    bool likely = false;      // judged by the kind of change, it will probably reproduce the bug
  };

  // `fired`: ids of faults that fired in runs that reproduced the bug. `faults_only`: remove faults and change nothing
  // else. `certain`: ids of faults that certainly happened in production. The last certain fault is removed only after
  // all uncertain ones, so that the result contains what did happen rather than what only may have happened.
  Simplifier(schedule::Schedule schedule, const std::set<std::string>& fired, bool faults_only = false,
             std::set<std::string> certain = {});

  // The next simpler form of current(); nothing if there is none left. Before it returns nothing, next() adds margins
  // to current(): it makes each duration that was shortened as far as possible a third longer again. No run checks
  // this, because longer durations reproduced the bug before.
  [[nodiscard]] std::optional<Idea> next();
  // Learns whether the last proposal reproduces the bug; if so, it becomes current().
  void learn(bool reproduces);

  [[nodiscard]] const schedule::Schedule& current() const { return current_; }
  // For people: the accepted changes except removed faults.
  [[nodiscard]] const std::vector<std::string>& changes() const { return changes_; }

 private:
  struct Changed {
    schedule::Schedule schedule;
    std::string what;
  };
  using Change = std::function<std::optional<Changed>(const schedule::Schedule&)>;
  struct Step {
    Change change;
    bool repeats = false;  // proposed again after it was accepted, for example to halve a duration once more
    bool drops_faults = false;
    bool drops_time = false;
    bool likely = false;        // see Idea
    bool continues = false;     // it repeats an accepted change; its text replaces the text of that change
    std::string shortens = {};  // the fault or group that it shortens; "": none
  };
  using Batch = std::vector<Step>;  // changes that are proposed together, and bisected if they are refuted

  void plan_drops(const std::set<std::string>& fired);  // plans the removal of faults
  void plan_details();                                  // plans all other changes
  void leave_margins();
  // Applies the batch to the current schedule and removes steps from it that change nothing. `words`: the text of each
  // step.
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
  std::map<std::string, std::int64_t> original_ns_;  // duration of a fault or group before it was shortened
  // faults or groups that did not reproduce the bug when they were shortened further
  std::set<std::string> at_minimum_;
};

// The schedule without one fault. Faults that waited for it wait for its predecessors instead, for the same total time.
[[nodiscard]] schedule::Schedule without(const schedule::Schedule& schedule, const std::string& id);

}  // namespace rose::diagnose
