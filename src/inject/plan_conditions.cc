// Plans the conditions under which faults fire, and the conditions under which they end.
#include "base/leaving.h"
#include "base/text.h"
#include "base/units.h"
#include "inject/plan_maker.h"

namespace rose::inject {

using schedule::ConditionKind;
using schedule::Fault;

Result<void> Planner::conditions(std::size_t chain, const std::vector<schedule::Condition>& list) {
  if (list.size() > ROSE_MAX_CHAIN_CONDITIONS) {
    return refuse(*plan_.chains[chain].fault, ErrorKind::input, fmt::format("{} conditions", list.size()),
                  fmt::format("at most {} a fault", static_cast<int>(ROSE_MAX_CHAIN_CONDITIONS)));
  }
  plan_.chains[chain].data.first_condition = static_cast<__u32>(plan_.conditions.size());
  plan_.chains[chain].data.conditions = static_cast<__u32>(list.size());
  for (std::size_t position = 0; position < list.size(); ++position) {
    ROSE_CHECK(condition(chain, position, list[position]));
  }
  return {};
}

Result<void> Planner::condition(std::size_t chain, std::size_t position, const schedule::Condition& source) {
  const Fault& fault = *plan_.chains[chain].fault;
  const auto where = fmt::format("its {} condition", ordinal_text(position + 1));
  const bool anywhere = source.kind == ConditionKind::role && source.node.empty();
  auto node =
      anywhere ? Result<std::uint32_t>(ROSE_ANY_NODE) : place(source.node.empty() ? fault.node : source.node, false);
  if (!node) return within(fault, std::move(node).error().in(where));
  // `until` refers to the node that was affected, even if another node has the role by then.
  const auto& ends = plan_.chains[chain].data;
  if (ends.kind == ROSE_CHAIN_END && source.node.empty() && !anywhere && *node >= ROSE_ROLE_NODES) {
    node = ROSE_CHAIN_NODES + ends.target;
  }

  const std::size_t id = plan_.conditions.size();
  plan_.conditions.emplace_back();
  PlannedCondition& condition = plan_.conditions.back();
  condition.source = &source;
  condition.data.chain = static_cast<__u32>(chain);
  condition.data.position = static_cast<__u32>(position);
  condition.data.node = *node;
  condition.data.count = static_cast<__u32>(source.count);
  condition.data.same_thread = source.same_thread ? 1 : 0;
  if (auto ok = counted(id); !ok) return within(fault, std::move(ok).error().in(where));
  if (auto ok = met_by(id, nodes_at(*node), anywhere ? "some node" : plan_.where(*node)); !ok)
    return within(fault, std::move(ok).error().in(where));
  return {};
}

Result<void> Planner::counted(std::size_t id) const {
  const PlannedCondition& condition = plan_.conditions[id];
  const schedule::Condition& source = *condition.source;
  if (source.count < 1 || source.count > 1'000'000'000)
    return fail(ErrorKind::input, fmt::format("count {} is out of range", source.count), "1 to 1000000000");
  if (!source.same_thread) return {};
  const bool can = source.kind == ConditionKind::function || source.kind == ConditionKind::syscall;
  const auto before = condition.data.position == 0 ? 0 : plan_.conditions[id - 1].data.kind;
  if (!can || (before != ROSE_ON_FUNCTION && before != ROSE_ON_SYSCALL)) {
    return fail(ErrorKind::input, "`same_thread` has no previous thread",
                "it is for a function or syscall condition that follows another one");
  }
  return {};
}

Result<void> Planner::met_by(std::size_t id, const std::vector<std::size_t>& nodes, const std::string& name) {
  PlannedCondition& condition = plan_.conditions[id];
  const schedule::Condition& source = *condition.source;
  switch (source.kind) {
    case ConditionKind::elapsed:
      if (source.count != 1) return fail(ErrorKind::input, "`elapsed` has no count");
      condition.data.kind = ROSE_ON_ELAPSED;
      condition.data.count = 1;
      condition.words = fmt::format("after {}", format_duration(source.elapsed_ns));
      return {};
    case ConditionKind::function:
      condition.data.kind = ROSE_ON_FUNCTION;
      condition.words = source.offset ? fmt::format("{}+{:#x} on {}", source.function, *source.offset, name)
                        : source.line ? fmt::format("line {} of {} on {}", *source.line, source.function, name)
                        : !leaving_of(source.function).exception.empty()
                            ? fmt::format("{} on {}", source.function, name)
                            : fmt::format("entry of {} on {}", source.function, name);
      return functions(static_cast<std::uint32_t>(id), ProbePoint{source.function, source.offset, source.line}, nodes);
    case ConditionKind::syscall: return met_by_call(condition, nodes, name);
    case ConditionKind::log: return met_by_line(condition, nodes, name);
    case ConditionKind::process_state:
      condition.data.kind = ROSE_ON_PROCESS;
      condition.words = fmt::format("{} {}", name, source.state);
      if (source.state == schedule::kOutOfMemory) {
        condition.words = fmt::format("the kernel killing a process of {} for lack of memory", name);
        if (!limits_memory(nodes))
          return fail(ErrorKind::input, fmt::format("no fault of this schedule limits the memory of {}", name),
                      "add a fault with kind = \"memory\" on that node, or use state = \"crashed\"");
        return {};
      }
      if (source.state != "crashed" && source.state != "exited" && source.state != "paused" &&
          source.state != "started") {
        return fail(ErrorKind::input, fmt::format("unknown state '{}'", source.state),
                    "\"crashed\", \"exited\", \"out-of-memory\", \"paused\" or \"started\"");
      }
      return {};
    case ConditionKind::role: return met_by_role(id, nodes, name);
  }
  return {};
}

bool Planner::limits_memory(const std::vector<std::size_t>& nodes) const {
  const auto limits = [&](const schedule::Fault& fault) {
    return fault.kind == schedule::FaultKind::memory &&
           (fault.node.starts_with('@') || std::any_of(nodes.begin(), nodes.end(), [&](std::size_t node) {
              return config_.nodes[node].name == fault.node;
            }));
  };
  return std::any_of(plan_.schedule.faults.begin(), plan_.schedule.faults.end(), limits);
}

Result<void> Planner::met_by_call(PlannedCondition& condition, const std::vector<std::size_t>& nodes,
                                  const std::string& name) {
  const schedule::Condition& source = *condition.source;
  condition.data.kind = ROSE_ON_SYSCALL;
  auto matcher = CallMatcher::compile(source.call);
  if (!matcher) return Unexpected(std::move(matcher).error());
  condition.call = std::move(*matcher);
  condition.words = fmt::format("return of {} on {}", condition.call->describe(), name);
  for (const std::size_t one : nodes) {
    if (config_.nodes[one].entered_by_rose()) continue;
    plan_.unsupervised = fmt::format(
        "fault '{}': its {} condition: node '{}' was not started by rose, so its syscalls cannot be watched",
        plan_.chains[condition.data.chain].fault->id, ordinal_text(condition.data.position + 1),
        config_.nodes[one].name);
  }
  if (!source.result) return {};
  const std::string& result = *source.result;
  char* end = nullptr;
  const auto value = std::strtoll(result.c_str(), &end, 0);
  condition.data.result_kind = ROSE_RESULT_VALUE;
  if (result == "ok") {
    condition.data.result_kind = ROSE_RESULT_OK;
  } else if (result == "error") {
    condition.data.result_kind = ROSE_RESULT_ERROR;
  } else if (const auto err = kernel::errno_number(result)) {
    condition.data.result = -*err;
  } else if (!result.empty() && *end == '\0') {
    condition.data.result = value;
  } else {
    return fail(ErrorKind::input, fmt::format("unknown result '{}'", result),
                "\"ok\", \"error\", an errno name such as \"EIO\", or a number");
  }
  return {};
}

Result<void> Planner::met_by_line(PlannedCondition& condition, const std::vector<std::size_t>& nodes,
                                  const std::string& name) const {
  const std::string& pattern = condition.source->log;
  condition.data.kind = ROSE_ON_LOG;
  condition.words = fmt::format("log line /{}/ of {}", pattern, name);
  for (const std::size_t one : nodes) {
    if (!config_.nodes[one].attach) continue;
    return fail(ErrorKind::environment, fmt::format("node '{}' was not started by rose, which cannot read its output",
                                                    config_.nodes[one].name));
  }
  condition.log.emplace(pattern);
  if (const std::string problem = condition.log->problem(); !problem.empty())
    return fail(ErrorKind::input, fmt::format("'{}' is not a regular expression: {}", pattern, problem));
  return {};
}

Result<void> Planner::met_by_role(std::size_t id, const std::vector<std::size_t>& nodes, const std::string& name) {
  const schedule::Condition& source = *plan_.conditions[id].source;
  const auto* known = source.role.empty() ? nullptr : plan_.schedule.find_role(source.role);
  if (!source.role.empty() && known == nullptr)
    return fail(ErrorKind::input, fmt::format("unknown role '{}'", source.role));
  const std::string& function = known != nullptr ? known->function : source.function;
  auto index = role_index(source.role, function);
  if (!index) return Unexpected(std::move(index).error());
  PlannedCondition& condition = plan_.conditions[id];
  condition.data.kind = ROSE_ON_ROLE;
  condition.data.count = 1;
  condition.data.role = static_cast<__u16>(*index);
  condition.words = fmt::format("{} being the {}", name, source.role.empty() ? "last in " + function : source.role);
  // A BPF program detects when a node takes the role. OwnConditions detects that a node already has it.
  return functions(static_cast<std::uint32_t>(id), ProbePoint{function}, nodes);
}

}  // namespace rose::inject
