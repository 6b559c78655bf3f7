// Configures the host's loopback interface so that packets that a `network` fault has delayed can be received there. A
// delayed packet loses the route that the kernel had determined for it. The kernel then routes it like a packet from
// outside, and would reject it, because a local source address in such a packet counts as forged. All runs on the
// machine share the settings: the first run changes them and the last run restores them. If rose was killed, heal()
// restores them.
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

// Restores the settings that a killed rose changed. Returns a description, or "" if there was nothing to restore or a
// running rose needs the settings.
[[nodiscard]] std::string heal_loopback();

}  // namespace rose::deploy
