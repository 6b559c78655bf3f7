// Besides the oracle's answer, the search learns from the observables that a run contains. An observable that occurs in
// a run without the bug does not distinguish the failure, so its priority falls, and with it the weight of the
// candidates from which it may follow. The observables that have not occurred yet thus gain priority over those that
// have (ANDURIL, section 5.2, algorithm 2).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

// The error in the key of a call that did less than requested, without an error.
inline constexpr std::string_view kShortCall = "short";

// The observables in the trace of a run, as keys: "n2 connect ECONNREFUSED", "n2 write short", "n2 ended". Injected and
// planned events are left out.
[[nodiscard]] std::set<std::string> signs_of(const trace::Trace& trace);
// `error`: "" if the call did less than requested, without an error.
[[nodiscard]] std::string sign_of_call(std::string_view node, std::string_view syscall, std::string_view error);
[[nodiscard]] std::string sign_of_end(std::string_view node);

// Compares the failure's logs with the runs of a schedule that reproduced the bug. Those messages of these logs that
// report a problem are expected in the runs, unless they also occur in runs without faults or precede the workload.
struct MissingMessages {
  std::vector<std::string> words;  // expected messages that did not occur; empty if enough of them did
  std::size_t of = 0;              // number of expected messages
};
[[nodiscard]] MissingMessages messages_missing(const std::vector<Observable>& of_logs, const Diagnosis& diagnosis,
                                               const Tried& tried);

// For each node that ended itself in production, the text that describes that end; empty if one of these nodes also
// ended in the runs that reproduced the bug, or if these runs were not traced.
[[nodiscard]] std::vector<std::string> ends_missing(const Plan& plan, const Tried& tried);

class Feedback {
 public:
  // `control`: the trace of a run without faults. Its events are not observables.
  Feedback(const Plan& plan, const trace::Trace& control);

  // The share of the observables that are in `signs`, weighted by their priorities.
  [[nodiscard]] double share(const std::set<std::string>& signs) const;
  // Learns that a run of this schedule did not reproduce the bug. `signs`: the observables in the run.
  void missed(const schedule::Schedule& schedule, const std::set<std::string>& signs);
  // The factors by which runs changed the weights of candidates, by fault id; factors of 1 are left out.
  [[nodiscard]] std::map<std::string, double, std::less<>> factors() const;

 private:
  struct Wanted {
    Observable observable;
    double priority = 1;
  };
  // An observable that follows a candidate in time, so that it may be a consequence.
  struct Follows {
    std::size_t wanted = 0;  // index into wanted_
    double nearness = 0;     // 1 / (1 + number of candidates in between)
  };
  struct Known {
    std::string fault;
    std::string key;  // the candidate's own observable; "": it has none
    std::vector<Follows> follows;
    double consequence = 1;  // factor; falls when `key` occurs in runs that did not inject the fault
  };
  std::vector<Wanted> wanted_;
  std::vector<Known> known_;
};

}  // namespace rose::diagnose
