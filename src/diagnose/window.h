// A window of alternatives (ANDURIL, SOSP'24, section 5.2.5). After a run in which nothing fired, several trials whose
// injection points may not be reached are armed together as one group: the first that is reached fires, and the others
// are withdrawn. The number of alternatives doubles with each run in which nothing fired, so n trials that are never
// reached cost only about log n runs. A trial that will be reached has a run of its own. Private to diagnose.
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

// True if, according to the survey, the injection point of the trial's only fault is not reached without faults, or not
// often enough. False for trials that cannot be alternatives.
[[nodiscard]] bool may_be_unreached(const World& world, const Trial& t);
// A trial that arms all alternatives in one schedule, with the level of the first alternative. `name`: the name of the
// schedule.
[[nodiscard]] Trial in_one(const std::vector<Alternative>& alternatives, const std::string& name);
// The index of the alternative that fired; the number of alternatives if none did.
[[nodiscard]] std::size_t first_of(const std::vector<Alternative>& alternatives, const RunResult& result);
// Converts the result of the common run into the result that this alternative alone would have had, without the trace.
[[nodiscard]] RunResult as_if_alone(const std::vector<Alternative>& alternatives, std::size_t which,
                                    const RunResult& result);

}  // namespace rose::diagnose
