// Polls a condition. The time limit only ends a test that fails; a test that passes never waits for it.
#pragma once

#include <unistd.h>

#include <functional>

#include "base/clock.h"
#include "base/units.h"

namespace rose::test {

inline bool eventually(const std::function<bool()>& condition, std::int64_t limit_ns = 300 * kSecond) {
  const std::int64_t until = monotonic_ns() + limit_ns;
  while (!condition()) {
    if (monotonic_ns() > until) return false;
    ::usleep(2000);
  }
  return true;
}

}  // namespace rose::test
