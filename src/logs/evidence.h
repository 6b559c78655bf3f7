// A failure's logs as evidence: how they differ from the logs of runs without faults, and which causes they hint at.
// Also determines which of the failure's observables occur in the logs of a run.
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
  Logs normal;  // of a run without faults; has no nodes until such a run was made
  Difference difference;
  std::vector<Hint> hints;  // the hint with the greatest weight comes first
};

// Looks for the observables of the evidence in the logs of runs. Thread-safe: several runs may be examined at once.
class ObservableMatcher {
 public:
  // The references must outlive this object. The kinds of messages that runs log are added to `kinds`.
  ObservableMatcher(const Evidence& evidence, Templates& kinds, ReadOptions options);

  // The keys of the observables that the run's logs contain. Empty if the logs cannot be read.
  [[nodiscard]] std::set<std::string> observed_in(const std::vector<Input>& run);
  // The failure's logs side by side with the run's. `watch` followed the run and supplies the times of lines without a
  // timestamp; it may be null.
  [[nodiscard]] std::vector<SideBySide> side_by_side(const std::vector<Input>& run, const Watch* watch);

 private:
  const Evidence& evidence_;
  Templates& kinds_;
  ReadOptions options_;
  std::mutex mutex_;
};

// The key of an observable, which is unique within the evidence, for example "n1 says 17". Run records store these
// keys.
[[nodiscard]] std::string key_of(const Logs& failure, const Observed& observed);

}  // namespace rose::logs
