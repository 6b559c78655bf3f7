// System calls for the agent. Private to the agent.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace rose::jvm {

// The difference between this process's monotonic clock and the machine's, which rose reads (base/clock.h). They differ
// in a time namespace.
inline std::int64_t time_offset_ns() {
  static std::int64_t known = INT64_MIN;  // several threads may determine it at once, with the same result
  std::int64_t offset = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (offset != INT64_MIN) return offset;
  char text[64];
  const int fd = ::open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
  const ssize_t size = fd < 0 ? 0 : ::read(fd, text, sizeof text);
  if (fd >= 0) ::close(fd);
  // For example "monotonic -12 5000\n...".
  std::int64_t numbers[2] = {0, 0};
  bool negative = false, digits = false;
  for (ssize_t i = 0, at = 0; i < size && at < 2 && text[i] != '\n'; ++i) {
    if (text[i] == '-') negative = true;
    if (text[i] >= '0' && text[i] <= '9') {
      numbers[at] = numbers[at] * 10 + (text[i] - '0');
      digits = true;
    } else if (digits) {
      ++at;
      digits = false;
    }
  }
  offset = (negative ? -numbers[0] : numbers[0]) * 1'000'000'000 + numbers[1];
  __atomic_store_n(&known, offset, __ATOMIC_RELAXED);
  return offset;
}

inline std::int64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec - time_offset_ns();
}

inline int thread_id() { return static_cast<int>(::syscall(SYS_gettid)); }

}  // namespace rose::jvm
