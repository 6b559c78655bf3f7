// Describes schedules in English, for reports.
#include <algorithm>
#include <functional>
#include <unordered_map>

#include "base/ascii.h"
#include "base/leaving.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/syscalls.h"
#include "schedule/kinds.h"
#include "schedule/order.h"
#include "schedule/schedule.h"

namespace rose::schedule {
// The text that follows the name of the call: " of snapshot.* with peer 10.77.0.2:7000".
std::string call_details(const CallMatch& call) {
  std::string text;
  if (call.path) text += fmt::format(" of {}", *call.path);
  if (call.path2) text += fmt::format(" to {}", *call.path2);
  if (call.peer) text += fmt::format(" with peer {}", *call.peer);
  if (call.local) text += fmt::format(" on local address {}", *call.local);
  for (const auto& [index, value] : call.args) text += fmt::format(" with argument {} = {}", index, value);
  if (call.process) text += fmt::format(" by processes named {}", *call.process);
  return text;
}

namespace {

using NameFault = std::function<std::string(const std::string& id)>;

// Names the node: "n1" or "the leader".
std::string who(const std::string& node) {
  const auto role = role_of(node);
  return role ? fmt::format("the {}", *role) : node;
}

std::string condition_words(const Condition& condition, const std::string& own_node) {
  const std::string node = who(condition.node.empty() ? own_node : condition.node);
  const std::string times = condition.count > 1 ? fmt::format(" for the {} time", ordinal_text(condition.count)) : "";
  const std::string thread = condition.same_thread ? " in the same thread" : "";
  switch (condition.kind) {
    case ConditionKind::elapsed: return fmt::format("{} have passed", format_duration(condition.elapsed_ns));
    case ConditionKind::function:
      if (condition.offset && *condition.offset != 0)
        return fmt::format("{} has reached {}+{:#x}{}{}", node, condition.function, *condition.offset, times, thread);
      if (condition.line)
        return fmt::format("{} has reached line {} of {}{}{}", node, *condition.line, condition.function, times,
                           thread);
      if (const Leaving leaving = leaving_of(condition.function); !leaving.exception.empty())
        return fmt::format("{} has left {} by {}{}{}", node, leaving.method, leaving.exception, times, thread);
      return fmt::format("{} has entered {}{}{}", node, condition.function, times, thread);
    case ConditionKind::syscall: {
      std::string result;
      if (condition.result == "ok") result = ", successfully";
      else if (condition.result == "error") result = " and it failed";
      else if (condition.result && kernel::errno_number(*condition.result))
        result = fmt::format(" and it failed with {}", *condition.result);
      else if (condition.result) result = fmt::format(" and it returned {}", *condition.result);
      return fmt::format("{} has made its {} {}{}{}{}", node, ordinal_text(condition.count), condition.call.syscall,
                         call_details(condition.call), thread, result);
    }
    case ConditionKind::log: return fmt::format("{} has logged \"{}\"{}", node, condition.log, times);
    case ConditionKind::process_state:
      if (condition.state == kOutOfMemory)
        return fmt::format("the kernel has killed a process of {} for lack of memory{}", node, times);
      if (condition.state == "paused") return fmt::format("{} was paused", node);
      return fmt::format("{} has {}", node, condition.state);
    case ConditionKind::role: {
      const std::string somebody = condition.node.empty() ? "some node" : node;
      if (condition.role.empty()) return fmt::format("{} is the last to have entered {}", somebody, condition.function);
      return fmt::format("{} is the {}", somebody, condition.role);
    }
  }
  return {};
}

std::string conditions_words(const std::vector<Condition>& conditions, const std::string& node) {
  std::string text;
  for (const Condition& condition : conditions)
    text += fmt::format("{}{}", text.empty() ? "" : ", then ", condition_words(condition, node));
  return text;
}

std::string whom(const Fault& fault) {
  if (fault.scope == Scope::others) return fmt::format("the processes of {} besides its main one", who(fault.node));
  return fault.scope == Scope::main ? fmt::format("the main process of {}", who(fault.node))
                                    : fmt::format("{} (all its processes)", who(fault.node));
}

// "let the 1st write of */log on n1 do only 97 bytes, and fail the next 13 with ENOSPC"
std::string short_then_fails_words(const Fault& fault) {
  const std::string next = fault.times < 0    ? "all later ones"
                           : fault.times == 1 ? "the next one"
                                              : fmt::format("the next {}", fault.times);
  return fmt::format("let the {} {}{} on {} do only {} bytes, and fail {} with {}{}", ordinal_text(fault.count),
                     fault.call.syscall, call_details(fault.call), who(fault.node), fault.effect_bytes, next,
                     kernel::errno_name(fault.error),
                     fault.delay_ns != 0 ? fmt::format(", each {} late", format_duration(fault.delay_ns)) : "");
}

std::string syscall_words(const Fault& fault) {
  if (is_short_then_fails(fault)) return short_then_fails_words(fault);
  const std::string call = fault.call.syscall + call_details(fault.call);
  std::string which;
  if (fault.times < 0)
    which = fault.count == 1 ? fmt::format("every {}", call)
                             : fmt::format("every {} from the {} on", call, ordinal_text(fault.count));
  else if (fault.times == 1) which = fmt::format("the {} {}", ordinal_text(fault.count), call);
  else which = fmt::format("{} calls in a row, from the {} {} on,", fault.times, ordinal_text(fault.count), call);
  which += fmt::format(" on {}", who(fault.node));

  std::string text;
  if (fault.error != 0) text = fmt::format("fail {} with {}", which, kernel::errno_name(fault.error));
  else if (fault.result) text = fmt::format("let {} return {}", which, *fault.result);
  else text = fmt::format("delay {} by {}", which, format_duration(fault.delay_ns));
  const bool changed = fault.error != 0 || fault.result;
  if (changed && fault.effect == Effect::full) text += " although it was carried out";
  if (changed && fault.effect == Effect::bytes)
    text += fmt::format(" after {} bytes of it were done", fault.effect_bytes);
  if (fault.result && fault.effect == Effect::none) text += " without executing it";
  if (changed && fault.delay_ns != 0) text += fmt::format(", {} late", format_duration(fault.delay_ns));
  if (fault.then_do == ThenDo::crash) text += fmt::format(", and kill {} right then", who(fault.node));
  return text;
}

std::string process_words(const Fault& fault) {
  std::string text;
  if (fault.kind == FaultKind::pause)
    text = fmt::format("pause {} for {}", whom(fault), format_duration(fault.duration_ns));
  else if (fault.signal == 9) text = fmt::format("kill {}", whom(fault));
  else text = fmt::format("send {} to {}", kernel::signal_name(fault.signal), whom(fault));
  if (fault.before)
    text += fmt::format(" {} the {} {}{}", fault.kind == FaultKind::crash ? "instead of" : "just before",
                        ordinal_text(fault.before_count), fault.before->syscall, call_details(*fault.before));
  return text + loss_words(fault);
}

// Describes which traffic is affected: " (TCP port 7000 only)".
std::string traffic_words(const Fault& fault) {
  std::string which = upper_case(fault.protocol);
  if (!fault.ports.empty())
    which += fmt::format("{}port{} {}", which.empty() ? "" : " ", fault.ports.size() == 1 ? "" : "s",
                         fmt::join(fault.ports, ", "));
  return which.empty() ? which : fmt::format(" ({} only)", which);
}

// Describes the duration: " for 12s".
std::string lasting_words(const Fault& fault) {
  if (fault.kind == FaultKind::block && !fault.until.empty())
    return fmt::format(" until {} (at most {})", conditions_words(fault.until, fault.node),
                       format_duration(fault.duration_ns != 0 ? fault.duration_ns : kMostBlockNs));
  if (fault.duration_ns != 0) return fmt::format(" for {}", format_duration(fault.duration_ns));
  if (!fault.until.empty()) return fmt::format(" until {}", conditions_words(fault.until, fault.node));
  return " to the end of the run";
}

std::string partition_words(const Fault& fault) {
  const std::string peers = fault.peers.empty() ? "all other nodes" : enumerate(fault.peers);
  std::vector<std::string> nodes{who(fault.node)};
  nodes.insert(nodes.end(), fault.side.begin(), fault.side.end());
  const std::string side = enumerate(nodes);
  const std::string receives = nodes.size() > 1 ? "receive" : "receives";
  const std::string sends = nodes.size() > 1 ? "send" : "sends";
  std::string text;
  if (fault.loss < 1.0) {
    const std::string share =
        fmt::format("{} {:.4g}% of the packets", fault.reject ? "reject" : "drop", fault.loss * 100);
    if (fault.direction == Direction::both)
      text = fmt::format("{} between {} and {}, in both directions", share, side, peers);
    else if (fault.direction == Direction::in)
      text = fmt::format("{} that {} {} from {}", share, side, receives, peers);
    else text = fmt::format("{} that {} {} to {}", share, side, sends, peers);
  } else if (fault.direction == Direction::both) {
    text = fmt::format("cut {} off from {} in both directions", side, peers);
  } else if (fault.direction == Direction::in) {
    text = fmt::format("cut {} off from {} for what {} {}", side, peers, nodes.size() > 1 ? "they" : "it", receives);
  } else {
    text = fmt::format("cut {} off from {} for what {} {}", side, peers, nodes.size() > 1 ? "they" : "it", sends);
  }
  text += traffic_words(fault);
  if (fault.reject) text += ", answering as a closed port does,";
  return text + lasting_words(fault);
}

std::string network_words(const Fault& fault) {
  std::vector<std::string> nodes{who(fault.node)};
  nodes.insert(nodes.end(), fault.side.begin(), fault.side.end());
  const std::string side = enumerate(nodes);
  const std::string peers = fault.peers.empty() ? "all other nodes" : enumerate(fault.peers);
  std::string text = bad_link_words(fault);
  if (fault.direction == Direction::both) text += fmt::format(" between {} and {}, in both directions", side, peers);
  if (fault.direction == Direction::in) text += fmt::format(" from {} to {}", peers, side);
  if (fault.direction == Direction::out) text += fmt::format(" from {} to {}", side, peers);
  return text + traffic_words(fault) + lasting_words(fault);
}

std::string exception_words(const Fault& fault) {
  std::string place = fault.function;
  if (fault.offset && *fault.offset != 0) place = fmt::format("{}+{:#x}", fault.function, *fault.offset);
  if (fault.at_line) place = fmt::format("line {} of {}", *fault.at_line, fault.function);
  std::string which;
  if (fault.times < 0)
    which = fault.count == 1 ? "every time" : fmt::format("every time from the {} on", ordinal_text(fault.count));
  else if (fault.times == 1) which = fmt::format("the {} time", ordinal_text(fault.count));
  else which = fmt::format("{} times in a row, from the {} on,", fault.times, ordinal_text(fault.count));
  return fmt::format("throw {} {} that {} reaches {}", fault.throws, which, who(fault.node), place);
}

// Says when the fault happens. The text starts with its own separator.
std::string trigger_words(const Fault& fault, const NameFault& name, const Schedule* schedule) {
  std::vector<std::string> others;
  for (const std::string& id : fault.after) others.push_back(name(id));
  // Choose the verb: events and steps come, whereas faults begin.
  const bool marks =
      schedule != nullptr && std::any_of(fault.after.begin(), fault.after.end(),
                                         [&](const std::string& id) { return schedule->find(id) == nullptr; });
  const std::string begun =
      fault.after.empty() ? "the workload began" : enumerate(others) + (marks ? " came" : " began");
  const std::string comma = lasts(fault.kind) ? ", " : " ";

  if (fault.when.empty()) {
    if (!fault.after.empty())
      return fmt::format("{}as soon as {}", comma, enumerate(others) + (marks ? " has come" : " has begun"));
    if (fault.kind == FaultKind::syscall || fault.kind == FaultKind::exception || fault.kind == FaultKind::block ||
        fault.before)
      return "";
    if (fault.kind == FaultKind::clock && !fault.node.starts_with('@')) return ", from its first instruction on";
    return comma + "when the workload begins";
  }
  std::vector<Condition> rest = fault.when;
  std::string text;
  if (rest.front().kind == ConditionKind::elapsed) {
    text = fmt::format("{}{} after {}", comma, format_duration(rest.front().elapsed_ns), begun);
    rest.erase(rest.begin());
    if (!rest.empty()) text += fmt::format(" and once {}", conditions_words(rest, fault.node));
    return text;
  }
  if (!fault.after.empty())
    return fmt::format(", once {} has begun, then {}", enumerate(others), conditions_words(rest, fault.node));
  return fmt::format(", once {}", conditions_words(rest, fault.node));
}

std::string words(const Fault& fault, const NameFault& name, const Schedule* schedule) {
  std::string text;
  switch (fault.kind) {
    case FaultKind::syscall: text = syscall_words(fault); break;
    case FaultKind::crash:
    case FaultKind::pause: text = process_words(fault); break;
    case FaultKind::partition: text = partition_words(fault); break;
    case FaultKind::network: text = network_words(fault); break;
    case FaultKind::clock: text = clock_words(fault, who(fault.node)) + lasting_words(fault); break;
    case FaultKind::exception: text = exception_words(fault); break;
    case FaultKind::descriptors:
    case FaultKind::memory:
    case FaultKind::cpu:
    case FaultKind::disk_full:
    case FaultKind::disk_slow: text = resource_words(fault, who(fault.node)) + lasting_words(fault); break;
    case FaultKind::block: text = block_words(fault, who(fault.node)) + lasting_words(fault); break;
  }
  text += trigger_words(fault, name, schedule);
  if (!fault.group.empty()) text += fmt::format(" (one of group '{}' is enough)", fault.group);
  return text;
}

// The indices of the faults. Each fault comes after those that it depends on; otherwise, the order is that of the file.
std::vector<std::size_t> order(const Schedule& schedule) {
  std::vector<std::size_t> result;
  std::vector<bool> placed(schedule.faults.size(), false);
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < schedule.faults.size(); ++i) index.emplace(schedule.faults[i].id, i);
  const auto ready = [&](const Fault& fault) {
    return std::all_of(fault.after.begin(), fault.after.end(), [&](const std::string& id) {
      const auto other = index.find(id);
      return other == index.end() || placed[other->second];
    });
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < schedule.faults.size(); ++i) {
      if (placed[i] || !ready(schedule.faults[i])) continue;
      placed[i] = moved = true;
      result.push_back(i);
    }
  }
  for (std::size_t i = 0; i < placed.size(); ++i)
    if (!placed[i]) result.push_back(i);  // only a cycle can be left, which parsing refuses
  return result;
}

// The fault without its node, for groups whose faults differ only in the node.
Fault anywhere(const Schedule& schedule, const Fault& fault) {
  Fault plain = fault;
  plain.id.clear();
  plain.line = 0;
  plain.group.clear();
  plain.node = "it";
  for (std::vector<Condition>* conditions : {&plain.when, &plain.until})
    for (Condition& condition : *conditions)
      if (condition.node == fault.node) condition.node.clear();
  // The faults on which alternatives depend may be alternatives, too. Let the first fault of a group stand for all of
  // them.
  for (std::string& id : plain.after)
    if (const Fault* other = schedule.find(id); other != nullptr && !other->group.empty())
      for (const Fault& first : schedule.faults)
        if (first.group == other->group) {
          id = first.id;
          break;
        }
  std::sort(plain.after.begin(), plain.after.end());
  plain.after.erase(std::unique(plain.after.begin(), plain.after.end()), plain.after.end());
  return plain;
}

bool alike(const Schedule& schedule, const Fault& a, const Fault& b) {
  return !a.group.empty() && a.group == b.group && anywhere(schedule, a) == anywhere(schedule, b);
}

}  // namespace

std::string in_words(const Fault& fault, const Schedule* schedule) {
  return words(fault, [](const std::string& id) { return fmt::format("'{}'", id); }, schedule);
}

std::vector<std::string> steps_in_words(const Schedule& schedule) {
  // Alternatives that differ only in their node form one step.
  std::vector<std::vector<std::size_t>> steps;
  for (const std::size_t i : order(schedule)) {
    const auto same = std::find_if(steps.begin(), steps.end(), [&](const std::vector<std::size_t>& step) {
      return alike(schedule, schedule.faults[step.front()], schedule.faults[i]);
    });
    if (same != steps.end()) same->push_back(i);
    else steps.push_back({i});
  }
  const auto step_of = [&](const std::string& id) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      for (const std::size_t at : steps[i])
        if (schedule.faults[at].id == id) return fmt::format("step {}", i + 1);
    return fmt::format("'{}'", id);
  };
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Fault fault = schedule.faults[steps[i].front()];
    std::string step;
    if (steps[i].size() > 1) {
      std::vector<std::string> nodes;
      for (const std::size_t at : steps[i]) nodes.push_back(who(schedule.faults[at].node));
      step = fmt::format("on whichever of {} gets there first: {}", enumerate(nodes),
                         words(anywhere(schedule, fault), step_of, &schedule));
    } else {
      std::vector<std::string> others;
      for (std::size_t other = 0; other < steps.size(); ++other)
        if (other != i && !fault.group.empty() && schedule.faults[steps[other].front()].group == fault.group)
          others.push_back(fmt::format("step {}", other + 1));
      if (steps.size() > 1) fault.group.clear();
      step = words(fault, step_of, &schedule);
      if (!others.empty()) step += fmt::format(" (this or {}, whichever comes first)", enumerate(others));
    }
    sentences.push_back(std::move(step));
  }
  return sentences;
}

namespace {

// Describes the order: "in the order a * b, where a is when n1 has logged "x", and b a step of the workload".
std::string order_words(const Schedule& schedule) {
  std::vector<std::string> names;
  for (const Event& event : schedule.events)
    names.push_back(fmt::format("{} is when {}", event.name, conditions_words(event.when, event.node)));
  std::vector<std::string> steps;
  if (const auto order = parse_order(schedule.order); order)
    for (const OrderedName& name : *order)
      if (schedule.find(name.name) == nullptr && schedule.find_event(name.name) == nullptr) steps.push_back(name.name);
  if (!steps.empty())
    names.push_back(
        fmt::format("{} {} of the workload", enumerate(steps), steps.size() == 1 ? "is a step" : "are steps"));
  const std::string text = schedule.order.empty() ? std::string() : fmt::format("in the order {}", schedule.order);
  if (names.empty()) return text;
  return text + (text.empty() ? "" : ", ") + "where " + enumerate(names);
}

}  // namespace

std::string in_words(const Schedule& schedule) {
  const std::string order = order_words(schedule);
  if (schedule.faults.empty()) return order.empty() ? "no fault" : "no fault, " + order;
  const std::vector<std::string> steps = steps_in_words(schedule);
  std::string text = steps.front();
  for (std::size_t i = 0; steps.size() > 1 && i < steps.size(); ++i)
    text = fmt::format("{}{}. {}", i == 0 ? "" : text + "\n", i + 1, steps[i]);
  return order.empty() ? text : text + "\n" + order;
}

}  // namespace rose::schedule
