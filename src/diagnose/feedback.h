// What runs show besides the oracle's answer. Observables of the evidence that come back in a miss are not what is
// missing: their weight falls, and so does that of candidates whose traces they are; the weight of those that never
// came back rises (ANDURIL, section 5.2, algorithm 2).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

// Which of the kinds that observables name occur in a run. What was injected does not count.
[[nodiscard]] std::set<std::string> signs_of(const trace::Trace& trace);
[[nodiscard]] std::string sign_of_call(std::string_view node, std::string_view syscall, std::string_view error);
[[nodiscard]] std::string sign_of_end(std::string_view node);

// Messages that say what went wrong, are unique to the failure's logs, and did not come back in runs that reproduced
// the bug. Messages that runs without faults have, too, or that were logged before the workload began, are no evidence
// and are left out.
struct MissingMessages {
  std::vector<std::string> words;  // empty where enough came back, or there are none
  std::size_t of = 0;
};
[[nodiscard]] MissingMessages messages_missing(const std::vector<Observable>& of_logs, const Diagnosis& diagnosis,
                                               const Tried& tried);

// The nodes that ended by themselves in production, in words; empty if one did so in runs that reproduced the bug, or
// if it is not known.
[[nodiscard]] std::vector<std::string> ends_missing(const Plan& plan, const Tried& tried);

class Feedback {
 public:
  // `control`: of a run without faults; what it shows is no observable.
  Feedback(const Plan& plan, const trace::Trace& control);

  // The share of the observables that the run brought back, each as much as it is wanted.
  [[nodiscard]] double share(const std::set<std::string>& signs) const;
  // The run had these faults and did not reproduce the bug.
  void missed(const schedule::Schedule& schedule, const std::set<std::string>& signs);
  // The factor by which the weight of each candidate changed, by its fault's id.
  [[nodiscard]] std::map<std::string, double, std::less<>> belief() const;

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
    std::string key;  // as which it would show by itself; "" never
    std::vector<Follows> follows;
    double consequence = 1;  // falls when it shows in runs that did not inject it
  };
  std::vector<Wanted> wanted_;
  std::vector<Known> known_;
};

}  // namespace rose::diagnose
