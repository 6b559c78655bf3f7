// Configures the host's loopback interface so that packets delayed by bad links can be received there: they have lost
// their route, so the kernel would consider their addresses forged. Shared by all runs on the machine: the first one
// changes the settings, the last one restores them, and heal() does so if rose was killed.
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

// Restores what a killed rose changed. Returns a description; "" if there was nothing, or a running rose needs it.
[[nodiscard]] std::string heal_loopback();

}  // namespace rose::deploy
