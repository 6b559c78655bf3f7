// A failure's logs as evidence: how they differ from those of runs without faults, the hints at causes in them, and
// which of their observables the logs of a run contain.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "logs/compare.h"
#include "logs/hint/hint.h"
#include "logs/side_by_side.h"
#include "logs/untimed.h"

namespace rose::logs {

struct Evidence {
  Logs failure;
  Logs normal;  // no nodes: no run without faults was made yet
  Difference difference;
  std::vector<Hint> hints;  // greatest weight first
};

// Compares runs with the observables of the evidence. Thread-safe: several runs may be compared at once.
class ObservableMatcher {
 public:
  // The references must outlive this object. The kinds of messages that runs log are added to `kinds`.
  ObservableMatcher(const Evidence& evidence, Templates& kinds, ReadOptions options);

  // The keys of the observables that the run's logs contain; empty if they cannot be read.
  [[nodiscard]] std::set<std::string> observed_in(const std::vector<Input>& run);
  // The failure's logs side by side with the run's. `watch` followed the run and supplies times to lines without a
  // timestamp; may be null.
  [[nodiscard]] std::vector<SideBySide> side_by_side(const std::vector<Input>& run, const Watch* watch);

 private:
  const Evidence& evidence_;
  Templates& kinds_;
  ReadOptions options_;
  std::mutex mutex_;
};

// "n1 says 17": the key of an observable, unique within the evidence. Run records store these keys.
[[nodiscard]] std::string key_of(const Logs& failure, const Observed& observed);

}  // namespace rose::logs
