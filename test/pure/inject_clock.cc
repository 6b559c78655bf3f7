// How several faults of one clock add up, and at which real time a changed clock shows a given time.
#include "inject/clock.h"

#include <catch2/catch.hpp>

#include "base/units.h"

using namespace rose;
using namespace rose::inject;

namespace {

schedule::ClockChange change(std::int64_t shift, double drift = 1, bool freeze = false) {
  schedule::ClockChange one;
  one.shift_ns = shift;
  one.drift = drift;
  one.freeze = freeze;
  return one;
}

std::int64_t shows(const ClockSum& sum, std::int64_t at, std::int64_t now, std::size_t group = 0) {
  const auto shift = sum.shifts({at, at})[group];
  return now + rose_clock_more(&shift, now);
}

}  // namespace

TEST_CASE("shifts and drifts of a clock add up, and a frozen clock stands still") {
  ClockSum sum;
  const std::int64_t t = 1'800'000'000 * kSecond;
  CHECK(shows(sum, t, t + 5) == t + 5);
  sum.begin(1, change(kSecond), {t, t});
  sum.begin(2, change(-3 * kSecond), {t, t});
  CHECK(shows(sum, t, t + 7) == t + 7 - 2 * kSecond);
  sum.begin(3, change(0, 3), {t, t});
  CHECK(shows(sum, t, t + 10 * kSecond) == t + 28 * kSecond);
  // Shifts that are computed later must give the same reading, so that the clock does not jump when they are updated.
  CHECK(shows(sum, t + 4 * kSecond, t + 10 * kSecond) == t + 28 * kSecond);
  sum.begin(4, change(0, 1, true), {t + 10 * kSecond, t + 10 * kSecond});
  sum.begin(5, change(0, 1, true), {t + 11 * kSecond, t + 11 * kSecond});
  const std::int64_t stands = shows(sum, t + 12 * kSecond, t + 13 * kSecond);
  CHECK(stands == shows(sum, t + 12 * kSecond, t + 99 * kSecond));
  for (std::size_t fault = 1; fault <= 5; ++fault) sum.end(fault);
  CHECK(shows(sum, t, t + 5) == t + 5);
  // The monotonic clock has to stay unchanged.
  sum.begin(6, change(kSecond), {t, t});
  CHECK(shows(sum, t, t, 1) == t);
}

TEST_CASE("a slow clock is exact for fifty years") {
  ClockSum sum;
  sum.begin(1, change(0, 0.5), {0, 0});
  constexpr std::int64_t kCentury = 100LL * 365 * 86400 * kSecond / 2;  // fifty years in nanoseconds
  CHECK(std::abs(shows(sum, 0, kCentury) - kCentury / 2) <= 1);
}

TEST_CASE("the real time at which a changed clock reaches a value is computed") {
  const std::int64_t now = 1'800'000'000 * kSecond;
  CHECK(real_time_of(now + kSecond, {}, now) == now + kSecond);
  CHECK(real_time_of(now + 3601 * kSecond, {3600 * kSecond, now, 0}, now) == now + kSecond);
  CHECK(real_time_of(now - 3599 * kSecond, {-3600 * kSecond, now, 0}, now) == now + kSecond);
  CHECK(real_time_of(now + 3 * kSecond, {0, now, 2L << 32}, now) == now + kSecond);
  // A frozen clock never shows a later time. The result is `now` plus the difference from the frozen time.
  CHECK(real_time_of(now + 3 * kSecond, {0, now, -(1L << 32)}, now) == now + 3 * kSecond);
  CHECK(real_time_of(now + 5 * kSecond, {10 * kSecond, now, 0}, now) <= now);  // the clock is past this value already
  CHECK(real_time_of(INT64_MAX, {0, now, -(3L << 30)}, now) == INT64_MAX);
}
