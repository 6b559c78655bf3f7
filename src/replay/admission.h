// Decides when runs that are made in parallel may start. Runs that only wait may overlap with others, because they use
// hardly any processor time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>

namespace rose::replay {

class Admission {
 public:
  // `most_busy`: the number of runs that may be busy at the same time, at least 1.
  explicit Admission(std::size_t most_busy) : most_(most_busy) {}

  // Waits until run `i` may start; it then counts as busy. Runs are admitted in the order of their numbers, from 0.
  // Returns false if the thread is cancelled (base/cancel.h) before that.
  [[nodiscard]] bool wait(std::size_t i);
  // Run `i` is not busy any more: it has ended, or from now on only waits. Later calls for the same run have no effect.
  void no_longer_busy(std::size_t i);

 private:
  const std::size_t most_;
  std::mutex mutex_;  // protects the members below
  std::condition_variable changed_;
  std::size_t next_ = 0;  // the run that is admitted next
  std::set<std::size_t> busy_;
};

}  // namespace rose::replay
