// A window of alternatives (ANDURIL, SOSP'24, section 5.2.5): after a run in which nothing fired, the next trials that
// the survey does not expect to be reached are armed together, as one group; the first that is reached fires, and the
// others are withdrawn. The window doubles with each run in which nothing fired, so of n such trials only about
// log n runs are lost. A trial that is certainly reached has a run of its own. Private to diagnose.
#pragma once

#include <cstddef>
#include <vector>

#include "diagnose/move.h"

namespace rose::diagnose {

class Window {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  void nothing_fired();

 private:
  std::size_t size_ = 1;
};

struct Alternative {
  Move* move = nullptr;
  Trial what;
};

// True if, according to the survey, the injection point of one of the faults is not reached without faults, or less
// often.
[[nodiscard]] bool may_be_unreached(const World& world, const Trial& t);
// All in one schedule, with the level of the first.
[[nodiscard]] Trial in_one(const std::vector<Alternative>& alternatives, const std::string& name);
// The index of the alternative that fired; their number if none did.
[[nodiscard]] std::size_t first_of(const std::vector<Alternative>& alternatives, const RunResult& result);
// The outcome of the common run for this alternative, as if it had been alone; without the trace.
[[nodiscard]] RunResult as_if_alone(const std::vector<Alternative>& alternatives, std::size_t which,
                                    const RunResult& result);

}  // namespace rose::diagnose
