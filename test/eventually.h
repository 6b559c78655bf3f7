// Waits for something, not for a time: the limit is only there so that a test that fails ends.
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
