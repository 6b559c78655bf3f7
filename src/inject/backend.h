// Selects what carries out a schedule's syscall faults and conditions: the override backend (bpf_override_return at the
// entry of calls, decided in the kernel: bpf/inject/calls.h) or the seccomp backend (user notification: supervisor.h).
// Both have the same effects.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "config/config.h"

namespace rose::inject {

struct Plan;

enum class CallBackend { none, seccomp, override_return };

struct BackendChoice {
  CallBackend backend = CallBackend::none;
  std::string reason;
};

// For an otherwise complete plan. Fails if the configuration requires a backend that the schedule or this machine does
// not support.
[[nodiscard]] Result<BackendChoice> choose_backend(const Plan& plan, config::Backend wanted);

// "seccomp: because ..."; "" for none.
[[nodiscard]] std::string describe(const BackendChoice& choice);

// Why this schedule's calls cannot be decided in the kernel; nothing if they can.
[[nodiscard]] std::optional<std::string> why_not_override(const Plan& plan);

}  // namespace rose::inject
