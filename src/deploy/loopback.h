// The host's loopback interface, set so that packets which bad links have held back may come in there: they lack the
// route that they left with, so the kernel would take their addresses for forged ones. Shared by all runs of a machine:
// the first sets it, the last gives back what it found, and heal() does so when rose was killed.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace rose::deploy {

class OpenLoopback {
 public:
  [[nodiscard]] static Result<OpenLoopback> open();
  OpenLoopback(OpenLoopback&&) noexcept = default;
  OpenLoopback& operator=(OpenLoopback&&) = delete;
  ~OpenLoopback();

 private:
  explicit OpenLoopback(Fd lock) : lock_(std::move(lock)) {}
  Fd lock_;
};

// What a killed rose left set, given back, in words; "" when there was nothing or somebody still needs it.
[[nodiscard]] std::string heal_loopback();

}  // namespace rose::deploy
