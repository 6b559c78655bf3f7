// Threads that may not be had: std::thread throws, which ends whoever does not expect it.
#pragma once

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

}  // namespace rose
