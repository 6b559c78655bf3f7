// System calls for the agent. Private to the agent.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace rose::jvm {

inline std::int64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

inline int thread_id() { return static_cast<int>(::syscall(SYS_gettid)); }

}  // namespace rose::jvm
