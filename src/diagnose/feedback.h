// Feedback from runs besides the oracle's answer. If an observable occurs in a run without the bug, it is not what is
// missing, so its weight and that of the candidates that cause it fall. The weight of observables that have not
// occurred yet rises (ANDURIL, section 5.2, algorithm 2).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

// The observables that occur in a run. What was injected does not count.
[[nodiscard]] std::set<std::string> signs_of(const trace::Trace& trace);
[[nodiscard]] std::string sign_of_call(std::string_view node, std::string_view syscall, std::string_view error);
[[nodiscard]] std::string sign_of_end(std::string_view node);

// Messages that report a problem, are unique to the failure's logs, and did not come back in runs that reproduced the
// bug. Messages that runs without faults also have, or that were logged before the workload began, are left out.
struct MissingMessages {
  std::vector<std::string> words;  // empty if enough came back, or there are none
  std::size_t of = 0;
};
[[nodiscard]] MissingMessages messages_missing(const std::vector<Observable>& of_logs, const Diagnosis& diagnosis,
                                               const Tried& tried);

// The nodes that ended by themselves in production, as text; empty if one did so in runs that reproduced the bug, or if
// it is not known.
[[nodiscard]] std::vector<std::string> ends_missing(const Plan& plan, const Tried& tried);

class Feedback {
 public:
  // `control`: the trace of a run without faults; what it contains is not an observable.
  Feedback(const Plan& plan, const trace::Trace& control);

  // The share of the observables that the run brought back, weighted by how much each is wanted.
  [[nodiscard]] double share(const std::set<std::string>& signs) const;
  // A run with these faults did not reproduce the bug.
  void missed(const schedule::Schedule& schedule, const std::set<std::string>& signs);
  // The factor by which the weight of each candidate changed, by its fault's id.
  [[nodiscard]] std::map<std::string, double, std::less<>> factors() const;

 private:
  struct Wanted {
    Observable observable;
    double priority = 1;
  };
  struct Follows {  // an observable of a candidate
    std::size_t wanted = 0;
    double nearness = 0;
  };
  struct Known {
    std::string fault;
    std::string key;  // the sign by which it would appear itself; "": never
    std::vector<Follows> follows;
    double consequence = 1;  // falls when it appears in runs that did not inject the fault
  };
  std::vector<Wanted> wanted_;
  std::vector<Known> known_;
};

}  // namespace rose::diagnose
