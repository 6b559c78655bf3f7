// Selects the backend for a schedule's syscall faults and for its conditions on system calls. The override backend
// matches and replaces calls in the kernel (bpf_override_return at the entry of calls: bpf/inject/calls.h). The seccomp
// backend does so in user space (user notification: supervisor.h), and supports more kinds of faults. A schedule that
// both backends support has the same effects with either.
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

// Call it for a plan that is otherwise complete. Fails if the configuration requires the override backend, but the
// schedule or this machine does not support it. Also fails if only the seccomp backend is left, and the schedule needs
// the calls of a node that rose did not start.
[[nodiscard]] Result<BackendChoice> choose_backend(const Plan& plan, config::Backend wanted);

// The backend and the reason for the choice: "override: this kernel can replace calls at their entry"; "" for none.
[[nodiscard]] std::string describe(const BackendChoice& choice);

// The reason why the override backend does not support this schedule; nothing if it does.
[[nodiscard]] std::optional<std::string> why_not_override(const Plan& plan);

}  // namespace rose::inject
