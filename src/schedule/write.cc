// Formats a schedule as a file in the form that a person would write, and computes its fingerprint.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/toml.h"
#include "base/units.h"
#include "kernel/syscalls.h"
#include "schedule/kinds.h"
#include "schedule/order.h"
#include "schedule/schedule.h"

namespace rose::schedule {

using toml::literal;

std::string inline_table(const Parts& parts) {
  std::string text = "{ ";
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", parts[i].first, parts[i].second);
  return text + " }";
}

void add_call(Parts& parts, const CallMatch& call) {
  parts.emplace_back("syscall", literal(call.syscall));
  if (call.path) parts.emplace_back("path", literal(*call.path));
  if (call.path2) parts.emplace_back("path2", literal(*call.path2));
  if (call.peer) parts.emplace_back("peer", literal(*call.peer));
  if (call.local) parts.emplace_back("local", literal(*call.local));
  if (!call.args.empty()) {
    Parts args;
    for (const auto& [index, value] : call.args) args.emplace_back(std::to_string(index), literal(value));
    parts.emplace_back("args", inline_table(args));
  }
  if (call.process) parts.emplace_back("process", literal(*call.process));
}

namespace {

std::string list(const std::vector<std::string>& words) {
  std::string text = "[";
  for (std::size_t i = 0; i < words.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", literal(words[i]));
  return text + "]";
}

std::string condition_text(const Condition& condition) {
  Parts parts;
  switch (condition.kind) {
    case ConditionKind::elapsed: parts.emplace_back("elapsed", literal(duration_text(condition.elapsed_ns))); break;
    case ConditionKind::function:
      parts.emplace_back("function", literal(condition.function));
      if (condition.offset) parts.emplace_back("offset", fmt::format("{:#x}", *condition.offset));
      if (condition.line) parts.emplace_back("line", std::to_string(*condition.line));
      break;
    case ConditionKind::syscall:
      add_call(parts, condition.call);
      if (condition.result) parts.emplace_back("result", literal(*condition.result));
      break;
    case ConditionKind::log: parts.emplace_back("log", literal(condition.log)); break;
    case ConditionKind::process_state: parts.emplace_back("state", literal(condition.state)); break;
    case ConditionKind::role:
      parts.emplace_back("role", condition.role.empty() ? inline_table({{"function", literal(condition.function)}})
                                                        : literal(condition.role));
      break;
  }
  if (condition.count != 1) parts.emplace_back("count", std::to_string(condition.count));
  if (condition.same_thread) parts.emplace_back("same_thread", "true");
  if (!condition.node.empty()) parts.emplace_back("node", literal(condition.node));
  return inline_table(parts);
}

std::string conditions_text(const std::vector<Condition>& conditions) {
  if (conditions.size() == 1) return fmt::format("[ {} ]", condition_text(conditions.front()));
  std::string text = "[\n";
  for (const Condition& condition : conditions) text += fmt::format("  {},\n", condition_text(condition));
  return text + "]";
}

void add_syscall(Parts& parts, const Fault& fault) {
  add_call(parts, fault.call);
  if (fault.error != 0) parts.emplace_back("error", literal(kernel::errno_name(fault.error)));
  if (fault.result) parts.emplace_back("result", std::to_string(*fault.result));
  if (fault.effect == Effect::full) parts.emplace_back("effect", "\"full\"");
  if (fault.effect == Effect::bytes) parts.emplace_back("effect", fmt::format("{{ bytes = {} }}", fault.effect_bytes));
  if (fault.delay_ns != 0) parts.emplace_back("delay", literal(duration_text(fault.delay_ns)));
  if (fault.count != 1) parts.emplace_back("count", std::to_string(fault.count));
  if (fault.times != 1) parts.emplace_back("times", fault.times < 0 ? "\"forever\"" : std::to_string(fault.times));
  if (fault.then_do == ThenDo::crash) parts.emplace_back("then", "\"crash\"");
}

void add_process(Parts& parts, const Fault& fault) {
  if (fault.scope == Scope::main) parts.emplace_back("scope", "\"main\"");
  if (fault.scope == Scope::others) parts.emplace_back("scope", "\"others\"");
  if (fault.kind == FaultKind::crash && fault.signal != 9)
    parts.emplace_back("signal", literal(kernel::signal_name(fault.signal)));
  if (fault.before) {
    Parts before;
    add_call(before, *fault.before);
    if (fault.before_count != 1) before.emplace_back("count", std::to_string(fault.before_count));
    parts.emplace_back("before", inline_table(before));
  }
  add_loss(parts, fault);
  if (fault.kind == FaultKind::pause) parts.emplace_back("duration", literal(duration_text(fault.duration_ns)));
}

// Adds which links are affected, and which part of their traffic.
void add_ends(Parts& parts, const Fault& fault) {
  if (!fault.peers.empty()) parts.emplace_back("peers", list(fault.peers));
  if (fault.direction != Direction::both)
    parts.emplace_back("direction", fault.direction == Direction::in ? "\"in\"" : "\"out\"");
  if (!fault.ports.empty()) parts.emplace_back("ports", fmt::format("[{}]", fmt::join(fault.ports, ", ")));
  if (!fault.protocol.empty()) parts.emplace_back("protocol", literal(fault.protocol));
}

void add_lasting(Parts& parts, const Fault& fault) {
  if (fault.duration_ns != 0) parts.emplace_back("duration", literal(duration_text(fault.duration_ns)));
  if (!fault.until.empty()) parts.emplace_back("until", conditions_text(fault.until));
}

void add_partition(Parts& parts, const Fault& fault) {
  add_ends(parts, fault);
  if (fault.loss != 1.0) parts.emplace_back("loss", fmt::format("{}", fault.loss));
  if (fault.reject) parts.emplace_back("action", "\"reject\"");
  add_lasting(parts, fault);
}

void add_exception(Parts& parts, const Fault& fault) {
  parts.emplace_back("throws", literal(fault.throws));
  if (!fault.message.empty()) parts.emplace_back("message", literal(fault.message));
  parts.emplace_back("function", literal(fault.function));
  if (fault.offset) parts.emplace_back("offset", fmt::format("{:#x}", *fault.offset));
  if (fault.at_line) parts.emplace_back("line", std::to_string(*fault.at_line));
  if (fault.count != 1) parts.emplace_back("count", std::to_string(fault.count));
  if (fault.times != 1) parts.emplace_back("times", fault.times < 0 ? "\"forever\"" : std::to_string(fault.times));
}

}  // namespace

std::string to_toml(const Schedule& schedule, std::string_view comment) {
  std::string text;
  if (!comment.empty()) {
    for (const std::string& line : split(comment, '\n')) {
      // Do what literal() does, but without quotes, because a comment must not contain control characters either.
      const std::string safe = literal(line);
      text += line.empty() ? "#\n" : "# ";
      for (std::size_t i = 1; !line.empty() && i + 1 < safe.size(); ++i) {
        if (safe[i] == '\\' && (safe[i + 1] == '"' || safe[i + 1] == '\\')) ++i;
        text += safe[i];
      }
      if (!line.empty()) text += '\n';
    }
    text += '\n';
  }
  text += "version = 1\n";
  if (!schedule.name.empty()) text += fmt::format("name = {}\n", literal(schedule.name));
  if (!schedule.order.empty()) text += fmt::format("order = {}\n", literal(schedule.order));
  for (const Role& role : schedule.roles)
    text += fmt::format("\n[[role]]\nname     = {}\nfunction = {}\n", literal(role.name), literal(role.function));
  for (const Event& event : schedule.events) {
    text += fmt::format("\n[[event]]\nname = {}\nnode = {}\nwhen = {}\n", literal(event.name), literal(event.node),
                        conditions_text(event.when));
    if (event.timeout_ns != kMostBlockNs)
      text += fmt::format("timeout = {}\n", literal(duration_text(event.timeout_ns)));
  }
  const auto order = parse_order(schedule.order);
  for (const Fault& fault : schedule.faults) {
    Parts parts;
    parts.emplace_back("id", literal(fault.id));
    parts.emplace_back("kind", literal(kind_name(fault.kind)));
    std::vector<std::string> nodes{fault.node};
    nodes.insert(nodes.end(), fault.side.begin(), fault.side.end());
    parts.emplace_back("node", fault.side.empty() ? literal(fault.node) : list(nodes));
    switch (fault.kind) {
      case FaultKind::syscall: add_syscall(parts, fault); break;
      case FaultKind::crash:
      case FaultKind::pause: add_process(parts, fault); break;
      case FaultKind::partition: add_partition(parts, fault); break;
      case FaultKind::network:
        add_ends(parts, fault);
        add_bad_link(parts, fault);
        add_lasting(parts, fault);
        break;
      case FaultKind::clock:
        add_clock(parts, fault);
        add_lasting(parts, fault);
        break;
      case FaultKind::exception: add_exception(parts, fault); break;
      case FaultKind::descriptors:
      case FaultKind::memory:
      case FaultKind::cpu:
      case FaultKind::disk_full:
      case FaultKind::disk_slow:
        add_resource(parts, fault);
        add_lasting(parts, fault);
        break;
      case FaultKind::block:
        add_block(parts, fault);
        add_lasting(parts, fault);
        break;
    }
    if (!fault.group.empty()) parts.emplace_back("group", literal(fault.group));
    if (fault.optional) parts.emplace_back("optional", "true");
    std::vector<std::string> after = fault.after;  // without the names that the order implies
    for (std::size_t i = 0; order && i < order->size(); ++i)
      if ((*order)[i].name == fault.id)
        std::erase_if(after, [&](const std::string& id) {
          return std::find((*order)[i].before.begin(), (*order)[i].before.end(), id) != (*order)[i].before.end();
        });
    if (!after.empty()) parts.emplace_back("after", list(after));
    if (!fault.when.empty()) parts.emplace_back("when", conditions_text(fault.when));
    std::size_t width = 0;
    for (const auto& [key, value] : parts) width = std::max(width, key.size());
    text += "\n[[fault]]\n";
    for (const auto& [key, value] : parts) text += fmt::format("{:<{}} = {}\n", key, width, value);
  }
  return text;
}

std::string fingerprint(const Schedule& schedule) {
  // Ids are arbitrary, so the same faults with other ids are the same schedule.
  Schedule plain = schedule;
  plain.name.clear();
  std::map<std::string, std::string> ids;
  std::map<std::string, std::string> groups;
  const bool named = !plain.order.empty();  // an order refers to faults by id, so the ids are kept
  for (const Fault& fault : plain.faults) {
    ids.emplace(fault.id, named ? fault.id : fmt::format("f{}", ids.size()));
    if (!fault.group.empty()) groups.emplace(fault.group, fmt::format("g{}", groups.size()));
  }
  for (Fault& fault : plain.faults) {
    fault.id = ids.at(fault.id);
    fault.optional = false;  // `optional` concerns the verdict, and not what is injected
    if (!fault.group.empty()) fault.group = groups.at(fault.group);
    for (std::string& id : fault.after)
      if (const auto it = ids.find(id); it != ids.end()) id = it->second;
    std::sort(fault.after.begin(), fault.after.end());
    std::sort(fault.side.begin(), fault.side.end());
    std::sort(fault.peers.begin(), fault.peers.end());
    std::sort(fault.ports.begin(), fault.ports.end());
    for (Condition& condition : fault.when)
      if (condition.node == fault.node && condition.kind != ConditionKind::role) condition.node.clear();
    for (Condition& condition : fault.until)
      if (condition.node == fault.node && condition.kind != ConditionKind::role) condition.node.clear();
  }
  // FNV-1a with two start values. The result has 128 bits, so collisions among the few hundred schedules of a record
  // are negligible.
  const std::string text = to_toml(plain);
  std::uint64_t first = 0xcbf29ce484222325;
  std::uint64_t second = 0x9e3779b97f4a7c15;
  for (const char c : text) {
    first = (first ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    second = (second ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    second ^= second >> 29;
  }
  return fmt::format("{:016x}{:016x}", first, second);
}

}  // namespace rose::schedule
