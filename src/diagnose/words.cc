#include "diagnose/words.h"

#include "base/text.h"
#include "base/units.h"

namespace rose::diagnose {

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

namespace {

// The last condition and the duration of a fault: " at 5s", " after the 2nd rename(*/epoch) for 3s".
std::string moment_words(const Fault& fault) {
  std::string text;
  if (!fault.when.empty()) {
    const Condition& last = fault.when.back();
    const std::string nth = last.count > 1 ? fmt::format("the {} ", ordinal_text(last.count)) : "";
    switch (last.kind) {
      case ConditionKind::elapsed: text = fmt::format(" at {}", format_duration(last.elapsed_ns)); break;
      case ConditionKind::function:
        text = fmt::format(" after {}{}", nth, last.function);
        if (last.offset && *last.offset != 0) text += fmt::format("+{:#x}", *last.offset);
        if (last.line) text += fmt::format(":{}", *last.line);
        break;
      case ConditionKind::syscall:
        text = fmt::format(
            " after {}{}({})", nth, last.call.syscall,
            last.call.path2.value_or(last.call.path.value_or(last.call.peer.value_or(last.call.local.value_or("")))));
        break;
      case ConditionKind::log: text = fmt::format(" after {}the line /{}/", nth, last.log); break;
      case ConditionKind::process_state:
        text = last.state == schedule::kOutOfMemory
                   ? fmt::format(" once {} ran out of memory", last.node.empty() ? fault.node : last.node)
                   : fmt::format(" once {} {}", last.node.empty() ? fault.node : last.node, last.state);
        break;
      case ConditionKind::role: text = fmt::format(" as {}", last.role); break;
    }
    if (fault.when.size() > 1) text += fmt::format(" and {} before", fault.when.size() - 1);
  }
  if (fault.before)
    text += fmt::format(" before {}{}({})",
                        fault.before_count > 1 ? fmt::format("the {} ", ordinal_text(fault.before_count)) : "",
                        fault.before->syscall, fault.before->path.value_or(fault.before->peer.value_or("")));
  if (hits_by_count(fault.kind) && fault.count > 1) text += fmt::format(", the {} one", ordinal_text(fault.count));
  if (fault.duration_ns > 0) text += fmt::format(" for {}", format_duration(fault.duration_ns));
  return text;
}

}  // namespace

std::string short_words(const Schedule& schedule) {
  if (schedule.faults.empty()) return "no faults";
  if (schedule.faults.size() == 1) return schedule::in_words(schedule.faults[0]);
  std::string text;
  for (const Fault& fault : schedule.faults)
    text += fmt::format("{}{}{}", text.empty() ? "" : "; ", fault.id, moment_words(fault));
  return fmt::format("{} faults: {}", schedule.faults.size(), text);
}

}  // namespace rose::diagnose
