// Selects the backend for a schedule's syscall faults and for its conditions on system calls. The override backend
// decides about calls in the kernel (bpf_override_return at the entry of calls: bpf/inject/calls.h). The seccomp
// backend decides about them in user space (user notification: supervisor.h). Both have the same effects.
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

// Call it for a plan that is otherwise complete. Fails if the configuration requires a backend that the schedule or
// this machine does not support.
[[nodiscard]] Result<BackendChoice> choose_backend(const Plan& plan, config::Backend wanted);

// The backend and the reason for the choice: "seccomp: because ..."; "" for none.
[[nodiscard]] std::string describe(const BackendChoice& choice);

// Why the calls of this schedule cannot be decided in the kernel; nothing if they can.
[[nodiscard]] std::optional<std::string> why_not_override(const Plan& plan);

}  // namespace rose::inject
