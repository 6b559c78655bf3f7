// Who carries out a schedule's syscall faults and conditions: the override backend (bpf_override_return at the calls'
// entries, decided wholly in the kernel: bpf/inject/calls.h) or the seccomp backend (user notification: supervisor.h).
// What they do is the same.
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

// For a plan that is complete otherwise. Fails when the configuration insists on what the schedule or this machine
// cannot have.
[[nodiscard]] Result<BackendChoice> choose_backend(const Plan& plan, config::Backend wanted);

// "seccomp: because ..."; "" for none.
[[nodiscard]] std::string describe(const BackendChoice& choice);

// Why this schedule's calls cannot be decided inside the kernel; nothing when they can.
[[nodiscard]] std::optional<std::string> why_not_override(const Plan& plan);

}  // namespace rose::inject
