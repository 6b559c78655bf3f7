// What must be seen before a fault, or before its end.
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
  auto node = anywhere ? Result<std::uint32_t>(ROSE_ANY_NODE) : place(source.node.empty() ? fault.node : source.node, false);
  if (!node) return within(fault, std::move(node).error().in(where));
  // `until` means the node that was hit, whoever has the role by then.
  const auto& ends = plan_.chains[chain].data;
  if (ends.kind == ROSE_CHAIN_END && source.node.empty() && !anywhere && *node >= ROSE_ROLE_NODES) {
    node = ROSE_CHAIN_NODES + ends.target;
  }
  const auto nodes = nodes_at(*node);
  const auto name = plan_.where(*node);

  const std::size_t id = plan_.conditions.size();
  plan_.conditions.emplace_back();
  PlannedCondition& condition = plan_.conditions.back();
  condition.source = &source;
  condition.data.chain = static_cast<__u32>(chain);
  condition.data.position = static_cast<__u32>(position);
  condition.data.node = *node;
  condition.data.count = static_cast<__u32>(source.count);
  condition.data.same_thread = source.same_thread ? 1 : 0;
  if (source.count < 1 || source.count > 1'000'000'000) {
    return refuse(fault, ErrorKind::input, fmt::format("{}: count {} is out of range", where, source.count),
                  "1 to 1000000000");
  }
  if (source.same_thread) {
    const bool can = source.kind == ConditionKind::function || source.kind == ConditionKind::syscall;
    const auto before = position == 0 ? 0 : plan_.conditions[id - 1].data.kind;
    if (!can || (before != ROSE_ON_FUNCTION && before != ROSE_ON_SYSCALL)) {
      return refuse(fault, ErrorKind::input, fmt::format("{}: `same_thread` has no thread to compare with", where),
                    "it is for a function or syscall condition that follows another one");
    }
  }
  switch (source.kind) {
    case ConditionKind::elapsed:
      if (source.count != 1) return refuse(fault, ErrorKind::input, fmt::format("{}: `elapsed` has no count", where));
      condition.data.kind = ROSE_ON_ELAPSED;
      condition.data.count = 1;
      condition.words = fmt::format("{} passing", format_duration(source.elapsed_ns));
      break;
    case ConditionKind::function:
      condition.data.kind = ROSE_ON_FUNCTION;
      condition.words =
          source.offset ? fmt::format("{}+{:#x} on {}", source.function, *source.offset, name)
          : source.line ? fmt::format("line {} of {} on {}", *source.line, source.function, name)
                        : fmt::format("entry of {} on {}", source.function, name);
      if (auto ok = functions(static_cast<std::uint32_t>(id), Spot{source.function, source.offset, source.line}, nodes); !ok) return within(fault, std::move(ok).error().in(where));
      break;
    case ConditionKind::syscall: {
      condition.data.kind = ROSE_ON_SYSCALL;
      auto matcher = CallMatcher::compile(source.call);
      if (!matcher) return within(fault, std::move(matcher).error().in(where));
      condition.call = std::move(*matcher);
      condition.words = fmt::format("return of {} on {}", condition.call->describe(), name);
      for (const std::size_t one : nodes) {
        if (!config_.nodes[one].attach || config_.nodes[one].attach->exec) continue;
        plan_.unsupervised = fmt::format("fault '{}': {}: node '{}' was not started by rose, so its syscalls cannot be watched",
                                         fault.id, where, config_.nodes[one].name);
      }
      if (!source.result) break;
      if (*source.result == "ok") {
        condition.data.result_kind = ROSE_RESULT_OK;
      } else if (*source.result == "error") {
        condition.data.result_kind = ROSE_RESULT_ERROR;
      } else {
        condition.data.result_kind = ROSE_RESULT_VALUE;
        char* end = nullptr;
        const auto value = std::strtoll(source.result->c_str(), &end, 0);
        if (const auto err = kernel::errno_number(*source.result)) {
          condition.data.result = -*err;
        } else if (!source.result->empty() && *end == '\0') {
          condition.data.result = value;
        } else {
          return refuse(fault, ErrorKind::input, fmt::format("{}: unknown result '{}'", where, *source.result),
                        "\"ok\", \"error\", an errno name such as \"EIO\", or a number");
        }
      }
      break;
    }
    case ConditionKind::log:
      condition.data.kind = ROSE_ON_LOG;
      condition.words = fmt::format("log line /{}/ of {}", source.log, name);
      for (const std::size_t one : nodes) {
        if (!config_.nodes[one].attach) continue;
        return refuse(fault, ErrorKind::environment,
                      fmt::format("{}: node '{}' was not started by rose, which does not see its output", where,
                                  config_.nodes[one].name));
      }
      condition.log.emplace(source.log);
      if (const std::string problem = condition.log->problem(); !problem.empty())
        return refuse(fault, ErrorKind::input, fmt::format("{}: '{}' is not a regular expression: {}", where, source.log, problem));
      break;
    case ConditionKind::process_state:
      condition.data.kind = ROSE_ON_PROCESS;
      condition.words = fmt::format("{} {}", name, source.state);
      if (source.state != "crashed" && source.state != "exited" && source.state != "paused" &&
          source.state != "started") {
        return refuse(fault, ErrorKind::input, fmt::format("{}: unknown state '{}'", where, source.state),
                      "\"crashed\", \"exited\", \"paused\" or \"started\"");
      }
      break;
    case ConditionKind::role: {
      condition.data.kind = ROSE_ON_ROLE;
      condition.data.count = 1;
      const auto* known = source.role.empty() ? nullptr : plan_.schedule.find_role(source.role);
      if (!source.role.empty() && known == nullptr) {
        return refuse(fault, ErrorKind::input, fmt::format("{}: unknown role '{}'", where, source.role));
      }
      const std::string& function = known != nullptr ? known->function : source.function;
      auto index = role_index(source.role, function);
      if (!index) return within(fault, std::move(index).error().in(where));
      plan_.conditions[id].data.role = static_cast<__u16>(*index);
      plan_.conditions[id].words = fmt::format("{} being the {}", anywhere ? "some node" : name,
                                               source.role.empty() ? "last in " + function : source.role);
      // Taking it is met there and then; having it already is seen from userspace.
      if (auto ok = functions(static_cast<std::uint32_t>(id), Spot{function}, nodes); !ok) {
        return within(fault, std::move(ok).error().in(where));
      }
      break;
    }
  }
  return {};
}

}  // namespace rose::inject
