// Starts threads and returns an error if that fails (std::thread throws, which would end the process). Also raises the
// priority of threads that must not be delayed.
#pragma once

#include <sched.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/result.h"

namespace rose {

// Returns ErrorKind::environment if the limit on processes or memory is reached.
template <typename Function>
[[nodiscard]] Result<std::thread> start_thread(Function&& function) {
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    return fail_errno(ErrorKind::environment, "cannot start a thread", error.code().value());
  }
}

// While this object exists, the thread that created it has real-time priority. It must therefore work only briefly or
// mostly wait.
class RunsAhead {
 public:
  RunsAhead();
  RunsAhead(const RunsAhead&) = delete;
  RunsAhead& operator=(const RunsAhead&) = delete;
  ~RunsAhead();
  [[nodiscard]] int error() const { return error_; }  // errno if the priority could not be raised; 0 if it was

 private:
  int policy_ = 0;
  sched_param before_{};
  int error_ = 0;
};

}  // namespace rose
