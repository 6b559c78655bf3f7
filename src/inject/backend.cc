#include "inject/backend.h"

#include "inject/override.h"
#include "inject/plan.h"
#include "kernel/old_kernel.h"
#include "kernel/probe.h"
#include "kernel/syscalls.h"

namespace rose::inject {
namespace {

std::optional<std::string> why_not(const CallMatcher& matcher) {
  for (const auto* glob : {&matcher.path(), &matcher.path2(), &matcher.peer(), &matcher.local(), &matcher.process()}) {
    if (*glob && (*glob)->size() > ROSE_GLOB_BYTES) {
      return fmt::format("a pattern of more than {} characters is not compared in the kernel",
                         static_cast<int>(ROSE_GLOB_BYTES));
    }
  }
  const auto numbers = matcher.numbers();
  for (const int number : numbers) {
    // A matcher may select several system calls. Those that this kernel lacks are ignored.
    if (entry_of(number)) return std::nullopt;
  }
  return fmt::format("this kernel has no function for '{}'", matcher.describe());
}

std::optional<std::string> why_not(const PlannedChain& chain) {
  const auto& fault = *chain.fault;
  if (auto why = why_not(*chain.call)) return why;
  if (fault.kind == schedule::FaultKind::block) return "a held call waits in user space";
  if (fault.kind != schedule::FaultKind::syscall) return std::nullopt;
  const bool answered = fault.error != 0 || fault.result.has_value();
  if (fault.delay_ns > 0) return "a delayed call must wait in user space";
  if (fault.effect == schedule::Effect::bytes) return "a part of a call's effect is carried out by user space";
  if (fault.effect == schedule::Effect::full && (answered || fault.then_do == schedule::ThenDo::crash)) {
    return "the effect of a call before its result is carried out by user space";
  }
  if (fault.then_do == schedule::ThenDo::crash && fault.times != 1)
    return "several crashes are carried out by user space";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not_override(const Plan& plan) {
  if (std::any_of(plan.clocks.begin(), plan.clocks.end(),
                  [](auto calls) { return calls != deploy::ClockCalls::none; })) {
    return "changed clocks are answered by user space";
  }
  for (std::size_t i = 0; i < plan.schedule.faults.size(); ++i) {
    if (!plan.chains[i].call) continue;
    if (auto why = why_not(plan.chains[i])) return fmt::format("fault '{}': {}", plan.schedule.faults[i].id, *why);
  }
  for (const auto& condition : plan.conditions) {
    if (!condition.call) continue;
    if (auto why = why_not(*condition.call)) {
      return fmt::format("a condition of fault '{}': {}", plan.chains[condition.data.chain].fault->id, *why);
    }
  }
  if (plan.conditions.size() + plan.chains.size() > ROSE_MAX_CALLS) {
    return fmt::format("more than {} conditions and faults", static_cast<int>(ROSE_MAX_CALLS));
  }
  return std::nullopt;
}

Result<BackendChoice> choose_backend(const Plan& plan, config::Backend wanted) {
  if (!plan.notifies()) return BackendChoice{};
  std::optional<std::string> lacks;  // why the override backend cannot be used
  ErrorKind kind = ErrorKind::environment;
  if (wanted == config::Backend::seccomp) {
    lacks = "[inject] syscall requires it";
  } else if (auto why = why_not_override(plan)) {
    lacks = std::move(why);
    kind = ErrorKind::input;
  } else if (wanted != config::Backend::override_return && plan.holds_calls()) {
    lacks = "calls that come before their turn in `order` must be held in user space";
  } else if (const auto found = kernel::probe("override_return"); !found.ok) {
    lacks = fmt::format("this machine has no bpf_override_return ({})", found.detail);
  } else if (kernel::is_old()) {
    lacks = "the BPF programs for Linux before 5.17 do not match calls";
  }
  if (!lacks) {
    return BackendChoice{CallBackend::override_return, wanted == config::Backend::override_return
                                                           ? "[inject] syscall requires it"
                                                           : "this kernel can replace calls at their entry"};
  }
  if (wanted == config::Backend::override_return) {
    return fail(kind, fmt::format("the override backend for syscall faults cannot be used: {}", *lacks),
                kind == ErrorKind::input ? "set [inject] syscall = \"auto\" or \"seccomp\""
                                         : "set [inject] syscall = \"auto\" or \"seccomp\", or use a kernel with "
                                           "CONFIG_BPF_KPROBE_OVERRIDE=y and CONFIG_FUNCTION_ERROR_INJECTION=y");
  }
  if (!plan.unsupervised.empty()) {
    return fail(ErrorKind::environment, fmt::format("{}: {}", plan.unsupervised, *lacks),
                "start it with `command`, or through `rose exec` with attach = { ..., exec = true }");
  }
  return BackendChoice{CallBackend::seccomp, *lacks};
}

std::string describe(const BackendChoice& choice) {
  switch (choice.backend) {
    case CallBackend::none: return "";
    case CallBackend::seccomp: return "seccomp: " + choice.reason;
    case CallBackend::override_return: return "override: " + choice.reason;
  }
  return "";
}

}  // namespace rose::inject
