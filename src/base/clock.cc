#include "base/clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace rose {
namespace {

std::int64_t now_ns(clockid_t clock) {
  timespec ts{};
  ::clock_gettime(clock, &ts);
  return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

bool same_link(const std::string& a, const std::string& b) {
  char first[64], second[64];
  const ssize_t n = ::readlink(a.c_str(), first, sizeof first);
  return n > 0 && ::readlink(b.c_str(), second, sizeof second) == n &&
         std::memcmp(first, second, static_cast<std::size_t>(n)) == 0;
}

// /proc/PID/timens_offsets describes the time namespace of the process's future children. That is the process's own
// namespace, except after unshare() without a fork: then the process itself remains in the old namespace.
TimeOffsets read_offsets() {
  TimeOffsets found;
  const std::string own = "/proc/self/ns/time";
  std::string of;
  for (const std::string& process : {std::string("/proc/self"), "/proc/" + std::to_string(::getppid())})
    if (of.empty() && same_link(own, process + "/ns/time_for_children")) of = process;
  if (of.empty()) return found;
  const int fd = ::open((of + "/timens_offsets").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return found;
  char text[256];
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return found;
  text[n] = '\0';
  // "monotonic 100000 0\nboottime 100000 0\n"
  const auto of_clock = [&](const char* name) -> std::int64_t {
    const char* at = std::strstr(text, name);
    if (at == nullptr) return 0;
    char* rest = nullptr;
    const long long seconds = std::strtoll(at + std::strlen(name), &rest, 10);
    return seconds * 1'000'000'000 + std::strtoll(rest, nullptr, 10);
  };
  found.monotonic_ns = of_clock("monotonic");
  found.boottime_ns = of_clock("boottime");
  return found;
}

}  // namespace

// The offsets are constant: a process cannot change its time namespace while it has several threads, and rose never
// changes it.
const TimeOffsets& time_offsets() {
  static const TimeOffsets offsets = read_offsets();
  return offsets;
}

std::int64_t monotonic_ns() { return now_ns(CLOCK_MONOTONIC) - time_offsets().monotonic_ns; }
std::int64_t wall_ns() { return now_ns(CLOCK_REALTIME); }

std::int64_t wall_offset_ns() {
  // Reads the wall clock between two monotonic readings. This thread may be preempted between the readings, so the
  // attempt with the smallest gap is used.
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
