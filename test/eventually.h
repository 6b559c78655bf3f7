// Polls a condition. The time limit only ends a test that fails; a test that passes never waits for it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "base/units.h"

namespace rose::test {

inline bool eventually(const std::function<bool()>& condition, std::int64_t limit_ns = 300 * kSecond) {
  const std::int64_t until = monotonic_ns() + limit_ns;
  // Poll frequently at first, then less often, so that polling does not take processor time from the tested programs.
  for (useconds_t rest = 1000; !condition(); rest = std::min<useconds_t>(rest + rest / 4, 20'000)) {
    if (monotonic_ns() > until) return false;
    ::usleep(rest);
  }
  return true;
}

}  // namespace rose::test
