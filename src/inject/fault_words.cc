#include "inject/fault_words.h"

#include <vector>

#include "base/units.h"
#include "kernel/syscalls.h"

namespace rose::inject {
namespace {

// The fault's location: "at the entry of f", "at f+0x2a".
std::string place_words(const schedule::Fault& fault) {
  if (fault.at_line) return fmt::format("at line {} of {}", *fault.at_line, fault.function);
  if (fault.offset && *fault.offset != 0) return fmt::format("at {}+{:#x}", fault.function, *fault.offset);
  return fmt::format("at the entry of {}", fault.function);
}

}  // namespace

std::string what_happens(const Plan& plan, std::size_t i, const std::string& call) {
  const auto& chain = plan.chains[i];
  const auto& fault = *chain.fault;
  if (fault.kind == schedule::FaultKind::descriptors) return "needs a descriptor and gets none";
  if (fault.kind == schedule::FaultKind::disk_full) return "needs disk space and gets none";
  if (fault.kind == schedule::FaultKind::memory) return "needs memory, and the kernel ends a process";
  if (fault.kind == schedule::FaultKind::exception) return fmt::format("{} throws {}", fault.function, fault.throws);
  std::string what = fault.kind == schedule::FaultKind::pause
                         ? "is stopped"
                         : fmt::format("gets {}", kernel::signal_name(fault.signal));
  if (fault.kind == schedule::FaultKind::block && chain.call)
    return fmt::format("waits before {}", call.empty() ? chain.call->describe() : call);
  if (fault.kind == schedule::FaultKind::block) return fmt::format("waits {}", place_words(fault));
  if (fault.kind == schedule::FaultKind::crash || fault.kind == schedule::FaultKind::pause) {
    if (!call.empty()) return fmt::format("{} ahead of {}", what, call);
    if (chain.data.conditions == 0) return what;
    const PlannedCondition& last = plan.conditions[chain.data.first_condition + chain.data.conditions - 1];
    return fmt::format("{} {}{}", what, last.data.kind == ROSE_ON_ELAPSED ? "" : "at the ", last.words);
  }
  const auto where = call.empty() && chain.call ? chain.call->describe() : call;
  if (fault.then_do == schedule::ThenDo::crash) return fmt::format("gets SIGKILL in {}", where);
  if (schedule::is_short_then_fails(fault))
    return fmt::format("{} does only {} bytes, and the next call fails with {}", where, *fault.result,
                       kernel::errno_name(fault.error));
  if (fault.error != 0) return fmt::format("{} fails with {}", where, kernel::errno_name(fault.error));
  if (fault.result) return fmt::format("{} returns {}", where, *fault.result);
  return fault.delay_ns > 0 ? fmt::format("{} waits {}", where, format_duration(fault.delay_ns)) : where;
}

std::string processes_text(std::uint64_t count) {
  return count == 1 ? "1 process" : fmt::format("{} processes", count);
}

bool is_unharmed(const Programs::Carried& carried) {
  const rose_link& link = carried.link;
  return link.lost + link.duplicated + link.corrupted + carried.held.overflown == 0 &&
         carried.held.held == carried.held.ahead + carried.held.at_once;
}

std::string link_detail(const Programs::Carried& carried) {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  add(carried.held.held - carried.held.ahead - carried.held.overflown - carried.held.at_once, "held back");
  add(carried.held.ahead, "sent ahead");
  add(carried.link.lost, "lost");
  add(carried.held.overflown, "lost in a full queue");
  add(carried.link.duplicated, "duplicated");
  add(carried.link.corrupted, "corrupted");
  if (parts.empty()) return fmt::format("{} packets passed it unchanged", carried.link.matched);
  return fmt::format("of {} packets {}", carried.link.matched, fmt::join(parts, ", "));
}

}  // namespace rose::inject
