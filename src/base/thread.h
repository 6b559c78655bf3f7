// Threads that may not be had: std::thread throws, which ends whoever does not expect it. And those that nobody may
// keep waiting.
#pragma once

#include <sched.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/result.h"

namespace rose {

// ErrorKind::environment where the limits on processes or memory are reached.
template <typename Function>
[[nodiscard]] Result<std::thread> start_thread(Function&& function) {
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    return fail_errno(ErrorKind::environment, "cannot start a thread", error.code().value());
  }
}

// As long as it lives, the thread that made it runs ahead of all that is not real-time. What it does must be short, or
// mostly wait.
class RunsAhead {
 public:
  RunsAhead();
  RunsAhead(const RunsAhead&) = delete;
  RunsAhead& operator=(const RunsAhead&) = delete;
  ~RunsAhead();
  [[nodiscard]] int error() const { return error_; }  // not 0: errno, and the thread runs as before

 private:
  int policy_ = 0;
  sched_param before_{};
  int error_ = 0;
};

}  // namespace rose
