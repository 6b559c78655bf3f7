// A failure's logs as evidence: how they differ from runs without faults, what they tell of its causes, and what a
// run's logs show of the same messages.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "logs/beside.h"
#include "logs/compare.h"
#include "logs/hint/hint.h"
#include "logs/untimed.h"

namespace rose::logs {

struct Evidence {
  Logs failure;
  Logs normal;  // without nodes: no run without faults was made yet
  Difference difference;
  std::vector<Hint> hints;  // heaviest first
};

// Compares runs with an evidence's observables. Safe to use from several runs at once.
class Judge {
 public:
  // Both must outlive it. Kinds of runs are added to `kinds`.
  Judge(const Evidence& evidence, Templates& kinds, ReadOptions options);

  // The keys of the observables that these logs of a run show; nothing when they can't be read.
  [[nodiscard]] std::set<std::string> shown(const std::vector<Input>& run);
  // The failure's log beside the run's; `watch` (may be null) followed the run.
  [[nodiscard]] std::vector<Beside> beside(const std::vector<Input>& run, const Watch* watch);

 private:
  const Evidence& evidence_;
  Templates& kinds_;
  ReadOptions options_;
  std::mutex mutex_;
};

// "says 17 of n1": a name for an observable.
[[nodiscard]] std::string key_of(const Logs& failure, const Observed& observed);

}  // namespace rose::logs
