#include "base/clock.h"

#include <ctime>

namespace rose {
namespace {

std::int64_t now_ns(clockid_t clock) {
  timespec ts{};
  ::clock_gettime(clock, &ts);
  return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

}  // namespace

std::int64_t monotonic_ns() { return now_ns(CLOCK_MONOTONIC); }
std::int64_t wall_ns() { return now_ns(CLOCK_REALTIME); }

std::int64_t wall_offset_ns() {
  // Reads the wall clock between two monotonic readings. This thread may be preempted between them, so the attempt with
  // the smallest gap is used.
  std::int64_t best_gap = INT64_MAX;
  std::int64_t offset = 0;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t before = monotonic_ns();
    const std::int64_t wall = wall_ns();
    const std::int64_t after = monotonic_ns();
    if (after - before < best_gap) {
      best_gap = after - before;
      offset = wall - (before + (after - before) / 2);
    }
  }
  return offset;
}

}  // namespace rose
