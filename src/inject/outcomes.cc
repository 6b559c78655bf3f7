#include "inject/outcomes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "inject/fault_words.h"
#include "kernel/syscalls.h"

namespace rose::inject {

std::vector<schedule::FaultOutcome> Outcomes::faults(const Stacks::ByFault& stacks) const {
  std::vector<schedule::FaultOutcome> all;
  for (std::size_t i = 0; i < from_.plan.schedule.faults.size(); ++i) {
    all.push_back(fault(i));
    if (const auto resolved = stacks.find(i); resolved != stacks.end() && all.back().fired)
      all.back().stacks = resolved->second;
  }
  return all;
}

schedule::FaultOutcome Outcomes::fault(std::size_t i) const {
  const auto& [plan, state, zero, programs, follows, limits, waits, process_stops, methods, nodes] = from_;
  const auto& chain = plan.chains[i];
  const auto& follow = follows[i];
  const Remarks remarks = follows.remarks(i);
  const auto now_state = state.state(i);
  schedule::FaultOutcome out;
  out.id = chain.fault->id;
  out.fired = now_state == ROSE_FIRED && carried_out(plan.chains[i], follow) && !follow.no_process && !follow.failed &&
              (!loses_power(i) || follow.lost);
  out.armed = out.fired || now_state == ROSE_FIRED || now_state == ROSE_ARMED;
  out.withdrawn = now_state != ROSE_FIRED && (now_state == ROSE_WITHDRAWN || state.lost(i));
  out.seen = state.seen(i);
  out.injected = state.injected(i);
  if (now_state == ROSE_FIRED) {
    out.fired_ns = zero.since(state.fired_ns(i)).value_or(0);
    out.pid = static_cast<int>(state.chain(i).pid);
    out.tid = static_cast<int>(state.chain(i).tid);
    out.node = name_of(i);
  }
  out.ended_ns = zero.since(follow.ended_ns);
  const auto at = remarks.call.empty() && now_state == ROSE_FIRED ? programs.fired_at(i) : remarks.call;
  out.detail = remarks.detail.empty() ? at : at.empty() ? remarks.detail : fmt::format("{} at {}", remarks.detail, at);
  describe_target(i, remarks, out);
  if (!remarks.lost_data.empty()) out.detail += fmt::format("; {}", remarks.lost_data);
  if (!remarks.trouble.empty()) out.detail += fmt::format(" ({})", remarks.trouble);
  const auto progress = state.progress(i);
  out.conditions = conditions(i, progress);
  if (!out.fired) out.why_not = why_not(i, progress, out.withdrawn);
  else out.no_effect = no_effect(i);
  return out;
}

// For a fault that has fired: why it changed nothing; "" if it changed something.
std::string Outcomes::no_effect(std::size_t i) const {
  const auto& [plan, state, zero, programs, follows, limits, waits, process_stops, methods, nodes] = from_;
  const auto& chain = plan.chains[i];
  const auto& fault = *chain.fault;
  const Remarks remarks = follows.remarks(i);
  const bool changed = follows[i].changed > 0;
  switch (chain.data.kind) {
    case ROSE_CHAIN_PARTITION: return programs.stopped(i).packets > 0 ? "" : "no packet was stopped";
    case ROSE_CHAIN_NETWORK: return is_unharmed(programs.carried(i)) ? link_detail(programs.carried(i)) : "";
    case ROSE_CHAIN_CLOCK:
      return changed ? "" : fmt::format("no process of {} read the clock while it was wrong", name_of(i));
    case ROSE_CHAIN_RESOURCE: {
      // BPF programs count, for each cgroup, the calls that fail for lack of descriptors or disk space. So nothing is
      // known about a node without its own cgroup.
      const bool counted =
          fault.kind == schedule::FaultKind::descriptors || fault.kind == schedule::FaultKind::disk_full;
      return counted && nodes[state.node_of(i)].blind ? "" : limits.no_effect(i);
    }
    case ROSE_CHAIN_BLOCK:
      if (chain.call) return state.injected(i) > 0 ? "" : "no thread waited";
      return waits.held(i) != Hold::none ? "" : "the thread did not wait";
    case ROSE_CHAIN_CRASH:
      if (process_stops.ended_some(i)) return {};
      return fmt::format("{} ended no process of {}", kernel::signal_name(fault.signal), name_of(i));
    case ROSE_CHAIN_PAUSE:
      if (changed || state.chain(i).signalled != 0) return {};
      return remarks.trouble.empty() ? "no process was stopped" : remarks.trouble;
    case ROSE_CHAIN_EXCEPTION: return state.injected(i) > 0 ? "" : "it was not thrown";
    case ROSE_CHAIN_SYSCALL:
      if (plan.in_kernel() ? state.injected(i) > 0 : changed) return {};
      if (follows[i].same) return "the call had that result anyway";
      if (follows[i].passed_over) return "rose does not act on the file of that call";
      return "its caller was gone before it was answered";
    default: return {};
  }
}

// Describes what was done to which processes and how often, as far as that applies to the fault's kind.
void Outcomes::describe_target(std::size_t i, const Remarks& remarks, schedule::FaultOutcome& out) const {
  const auto& chain = from_.plan.chains[i];
  const auto& fault = *chain.fault;
  switch (chain.data.kind) {
    case ROSE_CHAIN_PARTITION: {
      const auto stopped = from_.programs.stopped(i);
      out.injected = stopped.packets;
      if (!out.fired) return;
      std::vector<std::string> side{name_of(i)};
      side.insert(side.end(), fault.side.begin(), fault.side.end());
      // Add nodes that share the network of a node on this side.
      for (const rose_rule& rule : from_.plan.rules)
        for (std::size_t node = 0; rule.chain == i && node < from_.plan.nodes.size(); ++node)
          if (const std::string& name = from_.plan.nodes[node]; ((rule.side[node / 64] >> (node % 64)) & 1) != 0 &&
                                                                std::find(side.begin(), side.end(), name) == side.end())
            side.push_back(name);
      out.detail = fmt::format("{} partitioned off, {} packets dropped", fmt::join(side, " and "), out.injected);
      if (fault.reject) out.detail += fmt::format(", {} of them answered", stopped.rejected);
      return;
    }
    case ROSE_CHAIN_NETWORK: {
      const auto carried = from_.programs.carried(i);
      out.injected = carried.link.touched;
      out.seen = carried.link.matched;
      if (out.fired) out.detail = link_detail(carried);
      return;
    }
    default: break;
  }
  if (!out.fired) return;
  switch (chain.data.kind) {
    case ROSE_CHAIN_CLOCK:
      out.detail = out.injected == 0
                       ? fmt::format("{}, for all processes that start", out.node)
                       : fmt::format("{}, {} that ran and all that start", out.node, processes_text(out.injected));
      return;
    case ROSE_CHAIN_RESOURCE: std::tie(out.detail, out.injected) = from_.limits.effect(i); return;
    case ROSE_CHAIN_BLOCK:
      out.detail = fmt::format("a thread {}", what_happens(from_.plan, i, remarks.call));
      if (from_.waits.held(i) == Hold::stopped) out.detail += "; its process was stopped for a moment";
      return;
    case ROSE_CHAIN_EXCEPTION: {
      const auto entry = throw_entry(i);
      const auto where = from_.methods.found_in(entry);
      out.detail = fmt::format("{} thrown in {}", fault.throws, where.empty() ? fault.function : where);
      // The exception was requested but not thrown.
      if (!from_.methods.not_thrown(entry).empty()) out.fired = false, out.injected = 0;
      return;
    }
    default: return;
  }
}

std::vector<schedule::ConditionOutcome> Outcomes::conditions(std::size_t i, std::uint64_t progress) const {
  const auto& plan = from_.plan;
  const auto& chain = plan.chains[i].data;
  const auto position = ROSE_POSITION(progress);
  std::vector<schedule::ConditionOutcome> all;
  for (std::uint32_t k = 0; k < chain.conditions; ++k) {
    const std::size_t id = chain.first_condition + k;
    schedule::ConditionOutcome condition;
    condition.words = plan.conditions[id].words;
    condition.wanted = plan.conditions[id].data.count;
    if (position != ROSE_CLOSED && position > k) {
      condition.met = true;
      const auto& met = from_.state.condition(id);
      condition.met_ns = from_.zero.since(from_.state.met_ns(id)).value_or(0);
      condition.seen = plan.conditions[id].data.count;
      condition.pid = static_cast<int>(met.met_pid);
      condition.tid = static_cast<int>(met.met_tid);
      const auto where = met.node < ROSE_ROLE_NODES ? met.node : met.met_node - 1;
      if (where < plan.nodes.size() && met.kind != ROSE_ON_ELAPSED) condition.node = plan.nodes[where];
    } else if (position == k) {
      condition.seen = ROSE_SEEN(progress);
    }
    all.push_back(condition);
  }
  return all;
}

std::vector<schedule::OrderOutcome> Outcomes::order(std::string& broken) const {
  const auto& plan = from_.plan;
  std::vector<schedule::OrderOutcome> all;
  std::map<std::string, std::uint64_t> came;  // by name: when it happened
  for (const auto& name : plan.order) {
    const std::size_t i = plan.chain_named(name.name);
    schedule::OrderOutcome out{name.name,
                               "fault",
                               from_.state.state(i) == ROSE_FIRED,
                               from_.zero.since(from_.state.fired_ns(i)).value_or(0),
                               {}};
    if (const Mark* mark = plan.mark_named(name.name); mark != nullptr) out.kind = mark->step ? "step" : "event";
    out.held_ns = from_.waits.lasted_ns(i);
    if (out.came) came[name.name] = from_.state.fired_ns(i);
    if (!out.came) out.why_not = why_not(i, from_.state.progress(i), false);
    all.push_back(std::move(out));
  }
  for (const auto& name : plan.order) {
    const auto late = came.find(name.name);
    if (late == came.end()) continue;
    for (const std::string& early : name.before) {
      const auto first = came.find(early);
      if (first != came.end() && first->second <= late->second) continue;
      if (broken.empty())
        broken = fmt::format("'{}' came before '{}'{}", name.name, early,
                             first == came.end() ? ", which never happened" : "");
    }
  }
  return all;
}

// The number that identifies the chain's exception in the nodes' JVM agents.
std::uint32_t Outcomes::throw_entry(std::size_t chain) const {
  const auto& throws = from_.plan.throws;
  const auto at =
      std::find_if(throws.begin(), throws.end(), [chain](const rose_throw& one) { return one.chain == chain; });
  return ROSE_SITE_THROW | static_cast<std::uint32_t>(at - throws.begin());
}

std::string Outcomes::why_not(std::size_t i, std::uint64_t progress, bool withdrawn) const {
  const auto& [plan, state, zero, programs, follows, limits, waits, process_stops, methods, nodes] = from_;
  const auto& chain = plan.chains[i];
  const auto& fault = *chain.fault;
  if (withdrawn) {
    for (std::size_t k = 0; k < plan.schedule.faults.size(); ++k) {
      if (k != i && plan.schedule.faults[k].group == fault.group && state.state(k) == ROSE_FIRED) {
        return fmt::format("'{}' of the same group fired first", plan.schedule.faults[k].id);
      }
    }
    return "another fault of its group fired first";
  }
  if (follows[i].no_process) return fmt::format("{} had no living process when it was due", name_of(i));
  if (state.state(i) == ROSE_FIRED && loses_power(i) && !follows[i].lost) return "the run ended before the power loss";
  if (follows[i].failed) return fmt::format("it was due, but {}", follows.remarks(i).trouble);
  const auto position = ROSE_POSITION(progress);
  const bool held = waits.began(i);
  if (position == ROSE_CLOSED || held) return missing_condition(i, held);
  if (position < chain.data.conditions) return why_unmet(i, progress);
  if (chain.data.kind == ROSE_CHAIN_MARK && (chain.data.flags & ROSE_WAITS_FOR_CALL) != 0)
    return follows[i].begun ? "it was started, and its command has not ended"
                            : fmt::format("it never happened: the workload did not call 'rose step {}'", fault.id);
  if (state.node(i) == 0)
    return fmt::format("its conditions were met, but no node was {}", plan.where(chain.data.node));
  return why_not_reached(i);
}

// For a fault or event that did not happen because it must come after others: which of those are missing. `held`: a
// thread was held to wait for them.
std::string Outcomes::missing_condition(std::size_t i, bool held) const {
  const auto& plan = from_.plan;
  const auto& chain = plan.chains[i];
  if (chain.data.flags & ROSE_AT_WORKLOAD) return "the workload never started";
  std::string missing;
  for (const auto& id : chain.fault->after) {
    if (from_.state.fired_ns(plan.chain_named(id)) == 0)
      missing += fmt::format("{}'{}'", missing.empty() ? "" : " and ", id);
  }
  if (held) return fmt::format("it was about to happen and waited for {}, which did not happen", missing);
  return fmt::format("it comes after {}, which did not {}", missing, plan.marks.empty() ? "fire" : "come");
}

// Why the current condition of the chain was not met.
std::string Outcomes::why_unmet(std::size_t i, std::uint64_t progress) const {
  const auto& plan = from_.plan;
  const auto& chain = plan.chains[i];
  const auto position = ROSE_POSITION(progress);
  const auto seen = ROSE_SEEN(progress);
  const auto& condition = plan.conditions[chain.data.first_condition + position];
  const auto kind = condition.data.kind;
  std::string how = fmt::format("{} of {} seen", seen, condition.data.count);
  if (kind == ROSE_ON_ELAPSED) how = "the run ended before";
  if (kind == ROSE_ON_FUNCTION && seen == 0) how = condition.source->offset ? "never reached" : "never entered";
  if (kind == ROSE_ON_ROLE) how = "it never was";
  const bool seen_in_kernel = kind == ROSE_ON_FUNCTION || kind == ROSE_ON_SYSCALL || kind == ROSE_ON_ROLE;
  if (const auto where = condition.data.node;
      seen_in_kernel && where < from_.nodes.size() && from_.nodes[where].blind) {
    how = fmt::format(
        "{} is in the machine's root cgroup, where its calls and functions cannot be distinguished from others; start "
        "it in its own cgroup",
        plan.nodes[where]);
  } else if (kind == ROSE_ON_FUNCTION && seen == 0) {
    const auto why = from_.methods.unreachable(chain.data.first_condition + position);
    if (!why.empty()) how += fmt::format(" ({})", why);
  }
  return fmt::format("condition {} of {} ({}) was not met: {}", position + 1, chain.data.conditions, condition.words,
                     how);
}

// For an armed fault: why its call or location was not reached.
std::string Outcomes::why_not_reached(std::size_t i) const {
  const auto& chain = from_.plan.chains[i];
  const auto& fault = *chain.fault;
  const auto& methods = from_.methods;
  const auto seen = from_.state.seen(i);
  const auto because = [](const std::string& why) { return why.empty() ? std::string() : fmt::format(" ({})", why); };
  if (chain.data.kind == ROSE_CHAIN_EXCEPTION) {
    const auto entry = throw_entry(i);
    if (const auto why = methods.not_thrown(entry); from_.state.fired_ns(i) != 0 && !why.empty())
      return fmt::format("it was due, but {}", why);
    if (seen > 0)
      return fmt::format("{} reached {} {} times of {} required", name_of(i), fault.function, seen, chain.call_count);
    return fmt::format("{} never reached {} once it was armed{}", name_of(i), fault.function,
                       because(methods.unreachable(entry)));
  }
  if (chain.data.kind == ROSE_CHAIN_BLOCK && !chain.call) {
    if (seen > 0)
      return fmt::format("threads of {} reached {} {} times of {} required", name_of(i), fault.function, seen,
                         chain.call_count);
    return fmt::format("no thread of {} reached {} once it was armed{}", name_of(i), fault.function,
                       because(methods.unreachable(block_entry(i))));
  }
  if (!chain.call) return "its conditions were met as the run ended";
  const auto node = from_.state.node_of(i);
  if (from_.plan.enters[node] && from_.nodes[node].supervised && !from_.nodes[node].entered)
    return fmt::format("no process of {} was started through `rose exec`", name_of(i));
  if (seen == 0) return fmt::format("no call matched {} on {} once it was armed", chain.call->describe(), name_of(i));
  return fmt::format("{} matching calls of {} were seen on {} of {} required", seen, chain.call->describe(), name_of(i),
                     chain.call_count);
}

}  // namespace rose::inject
