#include "inject/plan.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "inject/carry_out.h"
#include "inject/clock.h"
#include "inject/limits.h"
#include "inject/plan_maker.h"
#include "inject/power.h"
#include "inject/slow_disks.h"
#include "jvm/node.h"
#include "kernel/probe.h"

namespace rose::inject {

using schedule::ConditionKind;
using schedule::Effect;
using schedule::Fault;
using schedule::FaultKind;

Result<std::size_t> Planner::node_index(const std::string& name, bool injects) const {
  for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
    if (config_.nodes[i].name != name) continue;
    if (injects && config_.nodes[i].attach && !allow_attached_) {
      return fail(ErrorKind::environment,
                  fmt::format("node '{}' was not started by rose and may be in production use", name),
                  "use --allow-attached to inject into it");
    }
    return i;
  }
  auto hint = did_you_mean(name, config_.node_names());
  if (hint.empty()) hint = fmt::format("the nodes are {}", fmt::join(config_.node_names(), ", "));
  return fail(ErrorKind::input, fmt::format("unknown node '{}'", name), std::move(hint));
}

Result<std::uint32_t> Planner::place(const std::string& name, bool injects) {
  const auto role = schedule::role_of(name);
  if (!role) {
    ROSE_TRY(const std::size_t node, node_index(name, injects));
    return static_cast<std::uint32_t>(node);
  }
  const auto* known = plan_.schedule.find_role(*role);
  if (known == nullptr) {
    return fail(ErrorKind::input, fmt::format("unknown role '{}'", *role),
                "[[role]] with its name and function defines it");
  }
  // Any node may take the role, so all nodes are checked.
  for (const auto& node : config_.nodes) ROSE_CHECK(node_index(node.name, injects));
  ROSE_TRY(const auto index, role_index(known->name, known->function));
  return ROSE_ROLE_NODES + index;
}

// Roles are identified by their name, or by their function if they have no name.
Result<std::uint32_t> Planner::role_index(const std::string& name, const std::string& function) {
  const auto& label = name.empty() ? function : name;
  for (std::size_t i = 0; i < plan_.roles.size(); ++i) {
    if (plan_.roles[i] == label && role_functions_[i] == function) return static_cast<std::uint32_t>(i);
  }
  if (plan_.roles.size() == ROSE_MAX_ROLES) {
    return fail(ErrorKind::environment, "too many roles", fmt::format("at most {}", static_cast<int>(ROSE_MAX_ROLES)));
  }
  const auto index = static_cast<std::uint32_t>(plan_.roles.size());
  plan_.roles.push_back(label);
  role_functions_.push_back(function);
  auto found = functions(ROSE_SITE_ROLE | index, ProbePoint{function}, nodes_at(ROSE_ANY_NODE));
  if (!found) return Unexpected(std::move(found).error().in(fmt::format("role '{}'", label)));
  return index;
}

std::vector<std::size_t> Planner::nodes_at(std::uint32_t where) const {
  if (where < ROSE_ROLE_NODES) return {where};
  std::vector<std::size_t> all(config_.nodes.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

Result<void> Planner::make() {
  const auto& faults = plan_.schedule.faults;
  if (config_.nodes.size() > ROSE_MAX_NODES) {
    return fail(ErrorKind::input, fmt::format("{} nodes: faults can be injected into {} at most", config_.nodes.size(),
                                              static_cast<int>(ROSE_MAX_NODES)));
  }
  plan_.nodes = config_.node_names();
  plan_.clocks.resize(config_.nodes.size());
  plan_.on_host = config_.deployment.network == config::Network::host;
  for (const auto& node : config_.nodes) {
    plan_.attached.push_back(node.attach.has_value());
    plan_.in_container.push_back(node.container.has_value());
    plan_.enters.push_back(node.attach && node.attach->exec);
  }
  plan_.chains.resize(faults.size());
  plan_.methods.resize(config_.nodes.size());
  std::set<std::string> ids;
  for (const auto& one : faults) {
    if (!ids.insert(one.id).second) return refuse(one, ErrorKind::input, "the id is used twice");
  }
  for (std::size_t i = 0; i < faults.size(); ++i) ROSE_CHECK(fault(i));
  for (Mark& one : plan_.marks) ROSE_CHECK(mark(one));
  ROSE_CHECK(edges());
  ROSE_CHECK(order());
  ROSE_CHECK(lists());
  if (plan_.chains.size() > ROSE_MAX_CHAINS || plan_.conditions.size() > ROSE_MAX_CONDITIONS ||
      plan_.edges.size() > ROSE_MAX_EDGES || plan_.rules.size() > ROSE_MAX_RULES ||
      plan_.sites.size() > ROSE_MAX_SITES) {
    return fail(
        ErrorKind::input,
        fmt::format(
            "the schedule is too large: {} faults, {} conditions, {} orders, {} partitions and bad links, {} probes",
            plan_.chains.size(), plan_.conditions.size(), plan_.edges.size(), plan_.rules.size(), plan_.sites.size()),
        fmt::format("at most {}, {}, {}, {} and {}", static_cast<int>(ROSE_MAX_CHAINS),
                    static_cast<int>(ROSE_MAX_CONDITIONS), static_cast<int>(ROSE_MAX_EDGES),
                    static_cast<int>(ROSE_MAX_RULES), static_cast<int>(ROSE_MAX_SITES)));
  }
  return {};
}

static constexpr __u32 chain_kind(FaultKind kind) {
  switch (kind) {
    case FaultKind::syscall: return ROSE_CHAIN_SYSCALL;
    case FaultKind::crash: return ROSE_CHAIN_CRASH;
    case FaultKind::pause: return ROSE_CHAIN_PAUSE;
    case FaultKind::partition: return ROSE_CHAIN_PARTITION;
    case FaultKind::network: return ROSE_CHAIN_NETWORK;
    case FaultKind::clock: return ROSE_CHAIN_CLOCK;
    case FaultKind::exception: return ROSE_CHAIN_EXCEPTION;
    case FaultKind::descriptors:
    case FaultKind::memory:
    case FaultKind::cpu:
    case FaultKind::disk_full:
    case FaultKind::disk_slow: return ROSE_CHAIN_RESOURCE;
    case FaultKind::block: return ROSE_CHAIN_BLOCK;
  }
  return 0;
}

Result<void> Planner::fault(std::size_t index) {
  const Fault& fault = plan_.schedule.faults[index];
  {
    auto node = place(fault.node, true);
    if (!node) return within(fault, std::move(node).error());
    PlannedChain& chain = plan_.chains[index];
    chain.fault = &fault;
    chain.data.kind = chain_kind(fault.kind);
    chain.data.node = *node;
    chain.data.duration_ns = static_cast<__u64>(fault.duration_ns);
    switch (fault.kind) {
      case FaultKind::syscall: ROSE_CHECK(syscall_fault(fault, chain)); break;
      case FaultKind::crash:
      case FaultKind::pause:
        ROSE_CHECK(process_fault(fault, chain));
        if (fault.lose == schedule::Loss::nothing) break;
        plan_.losses.push_back(index);
        for (const std::size_t at : nodes_at(chain.data.node))
          if (auto can = check_power(plan_.schedule, fault, config_.nodes[at]); !can)
            return within(fault, std::move(can).error());
        break;
      case FaultKind::partition: ROSE_CHECK(partition(fault, index)); break;
      case FaultKind::network: ROSE_CHECK(bad_link(fault, index)); break;
      case FaultKind::clock: ROSE_CHECK(clock(fault, chain)); break;
      case FaultKind::exception: ROSE_CHECK(exception(fault, index)); break;
      case FaultKind::descriptors:
      case FaultKind::memory:
      case FaultKind::cpu:
      case FaultKind::disk_full:
      case FaultKind::disk_slow:
        for (const std::size_t at : nodes_at(chain.data.node))
          if (auto can = fault.kind == FaultKind::disk_slow ? check_slow(plan_.schedule, fault, config_.nodes[at])
                                                            : check_limit(fault, config_.nodes[at]);
              !can)
            return within(fault, std::move(can).error());
        break;
      case FaultKind::block: ROSE_CHECK(block(fault, index)); break;
    }
  }
  ROSE_CHECK(conditions(index, fault.when));
  {
    PlannedChain& chain = plan_.chains[index];
    for (const std::size_t node : nodes_at(chain.data.node)) {
      if (!chain.call || config_.nodes[node].entered_by_rose()) continue;
      plan_.unsupervised =
          fmt::format("fault '{}': node '{}' was not started by rose, so its syscalls cannot be changed", fault.id,
                      config_.nodes[node].name);
    }
    // A clock fault without conditions does not wait for the workload if its node is known in advance: the clock is
    // wrong from the node's first instruction on.
    const bool at_once = (chain.data.flags & ROSE_WAITS_FOR_CALL) != 0 ||
                         (fault.kind == FaultKind::clock && chain.data.node < ROSE_ROLE_NODES);
    if (fault.when.empty() && fault.after.empty() && !at_once) {
      chain.data.flags |= ROSE_AT_WORKLOAD;
    }
  }
  if (!fault.until.empty()) {
    if (!schedule::lasts(fault.kind)) return refuse(fault, ErrorKind::input, "`until` is for faults that last");
    PlannedChain end;
    end.fault = &fault;
    end.data.kind = ROSE_CHAIN_END;
    end.data.node = plan_.chains[index].data.node < ROSE_ROLE_NODES ? plan_.chains[index].data.node : 0;
    end.data.target = static_cast<__u32>(index);
    plan_.chains.push_back(std::move(end));
    ROSE_CHECK(conditions(plan_.chains.size() - 1, fault.until));
  }
  return {};
}

Result<void> Planner::mark(Mark& mark) {
  PlannedChain chain;
  chain.fault = &mark.carrier;
  chain.data.kind = ROSE_CHAIN_MARK;
  mark.chain = plan_.chains.size();
  if (mark.step) {
    chain.data.flags |= ROSE_WAITS_FOR_CALL;  // the chain waits for a call of `rose step` in the workload
  } else {
    auto node = place(mark.carrier.node, false);
    if (!node) return within(mark.carrier, std::move(node).error());
    chain.data.node = *node;
    in_turn(mark, chain.data);
  }
  plan_.chains.push_back(std::move(chain));
  return conditions(mark.chain, mark.carrier.when);
}

// If the event can be held, makes it wait for its turn: the thread waits at its location, or before the call that would
// complete the event. A call cannot be held if the condition requires a certain result, because the result is known
// only afterwards.
void Planner::in_turn(Mark& mark, rose_chain& chain) {
  const auto ordered =
      std::find_if(plan_.order.begin(), plan_.order.end(), [&](const auto& one) { return one.name == mark.name; });
  if (ordered == plan_.order.end() || ordered->before.empty() || mark.carrier.when.empty()) return;
  const auto& last = mark.carrier.when.back();
  if (last.kind == ConditionKind::function && holds_threads()) {
    chain.flags |= ROSE_IN_TURN | ROSE_HOLDS;
    plan_.holders.push_back(mark.chain);
  } else if (last.kind == ConditionKind::syscall && !last.result) {
    chain.flags |= ROSE_IN_TURN;
  } else {
    return;
  }
  mark.carrier.after = ordered->before;
}

bool Planner::holds_threads() {
  return kernel::probe("uprobe").ok && kernel::probe("send_signal").ok && kernel::probe("hold_thread").ok;
}

Result<void> Planner::syscall_fault(const Fault& fault, PlannedChain& chain) {
  auto matcher = CallMatcher::compile(fault.call);
  if (!matcher) return within(fault, std::move(matcher).error());
  chain.call = std::move(*matcher);
  chain.call_count = static_cast<std::uint64_t>(fault.count);
  chain.data.flags |= ROSE_WAITS_FOR_CALL;
  const bool answered = fault.error != 0 || fault.result.has_value();
  if (!answered && fault.effect == Effect::none && fault.delay_ns == 0 && fault.then_do == schedule::ThenDo::nothing) {
    return refuse(fault, ErrorKind::input, "it has no effect", "add an `error`, a `result`, a `delay` or an `effect`");
  }
  if (fault.delay_ns > 0 && fault.then_do == schedule::ThenDo::crash) {
    return refuse(fault, ErrorKind::input,
                  "`delay` together with then = \"crash\" is not possible in this version of rose",
                  "leave one of them out");
  }
  if (fault.error < 0 || fault.error > 4095) {
    return refuse(fault, ErrorKind::input, fmt::format("error {} is not an errno", fault.error), "1 to 4095");
  }
  // In this range, a result is an errno. The kernel uses some of these values internally to request a restart, so a
  // call with such a result would be restarted.
  if (fault.result && *fault.result <= -1 && *fault.result >= -4095) {
    return refuse(fault, ErrorKind::input, fmt::format("result {} would be an error", *fault.result),
                  fmt::format("say error = \"{}\"", kernel::errno_name(static_cast<int>(-*fault.result))));
  }
  if (fault.effect == Effect::none) return {};
  for (const int number : chain.call->numbers()) {
    const bool can = fault.effect == Effect::full ? can_carry_out(number) : can_carry_out_partly(number);
    if (can) continue;
    if (fault.effect == Effect::full && !answered && fault.then_do == schedule::ThenDo::nothing) continue;
    return refuse(
        fault, ErrorKind::input,
        fmt::format("effect = {} is not possible for '{}' in this version of rose",
                    fault.effect == Effect::full ? "\"full\"" : "{ bytes = n }", kernel::syscall_name(number)),
        fault.effect == Effect::full
            ? "it is for read, write, pread64, pwrite64, writev, pwritev, sendto, fsync, fdatasync, syncfs, "
              "sync_file_range, ftruncate, fallocate, lseek, fchmod and shutdown"
            : "it is for read, write, pread64, pwrite64, writev, pwritev and sendto");
  }
  if (fault.effect == Effect::bytes && fault.effect_bytes < 0) {
    return refuse(fault, ErrorKind::input, "`bytes` is negative");
  }
  return {};
}

Result<void> Planner::process_fault(const Fault& fault, PlannedChain& chain) {
  if (fault.scope == schedule::Scope::main) chain.data.flags |= ROSE_MAIN_ONLY;
  if (fault.scope == schedule::Scope::others) chain.data.flags |= ROSE_MAIN_SPARED;
  if (fault.kind == FaultKind::crash) {
    if (fault.signal < 1 || fault.signal > 64) {
      return refuse(fault, ErrorKind::input, fmt::format("signal {} does not exist", fault.signal), "1 to 64");
    }
    chain.data.signal = static_cast<__u32>(fault.signal);
  } else {
    chain.data.signal = SIGSTOP;  // stops the process immediately; the cgroup is frozen afterwards
  }
  if (!fault.before) return {};
  auto matcher = CallMatcher::compile(*fault.before);
  if (!matcher) return within(fault, std::move(matcher).error().in("`before`"));
  chain.call = std::move(*matcher);
  chain.call_count = static_cast<std::uint64_t>(fault.before_count);
  chain.data.flags |= ROSE_WAITS_FOR_CALL;
  return {};
}

Result<void> Planner::block(const Fault& fault, std::size_t index) {
  PlannedChain& chain = plan_.chains[index];
  chain.data.flags |= ROSE_WAITS_FOR_CALL;
  chain.call_count = static_cast<std::uint64_t>(fault.count);
  if (fault.duration_ns == 0) chain.data.duration_ns = schedule::kMostBlockNs;
  if (!fault.function.empty()) {
    for (const char* needed : {"uprobe", "send_signal", "hold_thread"}) {
      if (const auto found = kernel::probe(needed); !found.ok)
        return refuse(fault, ErrorKind::environment,
                      fmt::format("a thread cannot be held at a function here: {}", found.detail), found.remedy);
    }
    chain.data.count = static_cast<__u32>(fault.count);
    plan_.holders.push_back(index);
    const auto where = nodes_at(chain.data.node);
    if (auto ok = functions(block_entry(index), ProbePoint{fault.function, fault.offset, fault.at_line}, where); !ok)
      return within(fault, std::move(ok).error().in("`at`"));
    return {};
  }
  auto matcher = CallMatcher::compile(fault.call);
  if (!matcher) return within(fault, std::move(matcher).error().in("`at`"));
  chain.call = std::move(*matcher);
  return {};
}

Result<void> Planner::clock(const Fault& fault, const PlannedChain& chain) {
  if (auto able = NodeClocks::check(); !able) return within(fault, std::move(able).error());
  for (const std::size_t node : nodes_at(chain.data.node)) {
    if (config_.nodes[node].attach) {
      return refuse(
          fault, ErrorKind::environment,
          fmt::format("node '{}' was not started by rose, so its clocks cannot be changed", config_.nodes[node].name),
          "start it with `command`");
    }
    auto& calls = plan_.clocks[node];
    calls = fault.clock.monotonic || calls == deploy::ClockCalls::all ? deploy::ClockCalls::all
                                                                      : deploy::ClockCalls::realtime;
  }
  return {};
}

// Converts `after` to edges from each fault to the faults that depend on it. An `until` depends on its own fault.
Result<void> Planner::edges() {
  const auto& faults = plan_.schedule.faults;
  std::vector<std::vector<std::uint32_t>> waiting(plan_.chains.size());
  std::map<std::string, std::size_t> index;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    index[faults[i].id] = i;
    ids.push_back(faults[i].id);
  }
  for (const Mark& mark : plan_.marks) {
    index[mark.name] = mark.chain;
    ids.push_back(mark.name);
  }
  for (std::size_t i = 0; i < plan_.chains.size(); ++i) {
    auto& chain = plan_.chains[i].data;
    std::set<std::size_t> after;
    if (chain.kind == ROSE_CHAIN_END) {
      after.insert(chain.target);
    } else {
      const Fault& waits = *plan_.chains[i].fault;
      for (const auto& id : waits.after) {
        const auto at = index.find(id);
        if (at == index.end()) {
          return refuse(waits, ErrorKind::input, fmt::format("`after` names the unknown fault '{}'", id),
                        did_you_mean(id, ids));
        }
        after.insert(at->second);
      }
    }
    for (const std::size_t from : after) waiting[from].push_back(static_cast<std::uint32_t>(i));
    chain.after_left = static_cast<__u32>(after.size());
    // The chain also depends on the start of the workload.
    if (chain.flags & ROSE_AT_WORKLOAD) ++chain.after_left;
    chain.progress = chain.after_left > 0 && (chain.flags & ROSE_IN_TURN) == 0 ? ROSE_PROGRESS(ROSE_CLOSED, 0, 0)
                                                                               : ROSE_PROGRESS(0, 0, 0);
    if (chain.after_left == 0 && chain.conditions == 0 && chain.node < ROSE_ROLE_NODES) chain.state = ROSE_ARMED;
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    plan_.chains[i].data.first_edge = static_cast<__u32>(plan_.edges.size());
    plan_.chains[i].data.edges = static_cast<__u32>(waiting[i].size());
    plan_.edges.insert(plan_.edges.end(), waiting[i].begin(), waiting[i].end());
  }
  std::map<std::string, std::uint32_t> groups;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (faults[i].group.empty()) continue;
    const auto [at, fresh] = groups.try_emplace(faults[i].group, static_cast<std::uint32_t>(groups.size() + 1));
    plan_.chains[i].data.group = at->second;
    if (at->second >= ROSE_MAX_CHAINS) return refuse(faults[i], ErrorKind::input, "too many groups");
  }
  return {};
}

// Refuses cycles, because a fault that depends on itself, directly or indirectly, would never fire.
Result<void> Planner::order() {
  std::vector<int> left(plan_.chains.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < plan_.chains.size(); ++i) {
    left[i] =
        static_cast<int>(plan_.chains[i].data.after_left) - ((plan_.chains[i].data.flags & ROSE_AT_WORKLOAD) ? 1 : 0);
    if (left[i] == 0) ready.push_back(i);
  }
  std::size_t done = 0;
  while (done < ready.size()) {
    const auto& chain = plan_.chains[ready[done++]].data;
    for (std::uint32_t e = 0; e < chain.edges; ++e) {
      const auto next = plan_.edges[chain.first_edge + e];
      if (--left[next] == 0) ready.push_back(next);
    }
  }
  for (std::size_t i = 0; i < plan_.chains.size(); ++i) {
    if (left[i] > 0) {
      return refuse(*plan_.chains[i].fault, ErrorKind::input, "its `after` depends on itself",
                    "the dependencies of faults must not form a cycle");
    }
  }
  return {};
}

Result<void> Planner::lists() {
  plan_.notified.resize(config_.nodes.size());
  std::vector<std::set<int>> numbers(config_.nodes.size());
  std::vector<std::size_t> watched(config_.nodes.size());
  for (const auto& condition : plan_.conditions) {
    if (!condition.call) continue;
    for (const std::size_t node : nodes_at(condition.data.node)) {
      for (const int number : condition.call->numbers()) numbers[node].insert(number);
      ++watched[node];
    }
  }
  for (const auto& chain : plan_.chains) {
    if (!chain.call || chain.data.kind == ROSE_CHAIN_END) continue;
    for (const std::size_t node : nodes_at(chain.data.node)) {
      for (const int number : chain.call->numbers()) numbers[node].insert(number);
    }
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    plan_.notified[i].assign(numbers[i].begin(), numbers[i].end());
    if (watched[i] > ROSE_MAX_LIST) {
      return fail(ErrorKind::input,
                  fmt::format("{} syscall conditions on node '{}'", watched[i], config_.nodes[i].name),
                  fmt::format("at most {} on one node", static_cast<int>(ROSE_MAX_LIST)));
    }
  }
  for (std::size_t i = 0; i < plan_.methods.size(); ++i) {
    const auto throws = std::count_if(plan_.methods[i].begin(), plan_.methods[i].end(),
                                      [](const auto& place) { return !place.throws.empty(); });
    if (throws > ROSE_MAX_THROWS || plan_.methods[i].size() > ROSE_MAX_LIST) {
      return fail(ErrorKind::input,
                  fmt::format("{} exceptions and {} conditions on methods of node '{}'", throws,
                              plan_.methods[i].size() - static_cast<std::size_t>(throws), config_.nodes[i].name),
                  fmt::format("at most {} and {} on one node", static_cast<int>(ROSE_MAX_THROWS),
                              static_cast<int>(ROSE_MAX_LIST) - ROSE_MAX_THROWS));
    }
  }
  for (const auto& site : plan_.sites) {
    if (site.conditions.size() > ROSE_MAX_LIST) {
      return fail(ErrorKind::input,
                  fmt::format("{} conditions on the function at {:#x} of '{}'", site.conditions.size(), site.offset,
                              site.binary.string()),
                  fmt::format("at most {}", static_cast<int>(ROSE_MAX_LIST)));
    }
  }
  return {};
}

namespace {

// Creates the marks for all events, and for the steps in the order. A step waits for its turn through `after`, as a
// fault does, whose `after` was set when the schedule was read. Planner::in_turn decides which events wait.
Result<void> take_order(Plan& plan) {
  if (!plan.schedule.order.empty()) {
    auto names = schedule::parse_order(plan.schedule.order);
    if (!names) return Unexpected(std::move(names).error().in("order"));
    plan.order = std::move(*names);
  }
  for (const schedule::Event& event : plan.schedule.events) {
    Mark& mark = plan.marks.emplace_back();
    mark.name = mark.carrier.id = event.name;
    mark.carrier.node = event.node;
    mark.carrier.when = event.when;
    mark.carrier.duration_ns = event.timeout_ns;
  }
  for (const schedule::OrderedName& name : plan.order) {
    if (plan.schedule.find(name.name) != nullptr || plan.schedule.find_event(name.name) != nullptr) continue;
    Mark& mark = plan.marks.emplace_back();
    mark.name = mark.carrier.id = name.name;
    mark.step = true;
    mark.carrier.after = name.before;
  }
  return {};
}

}  // namespace

void Plan::take_stacks(const config::Config& config) {
  stacks = 1;
  if (schedule.faults.size() * ROSE_STACKS_EACH <= ROSE_MAX_STACKS) stacks = ROSE_STACKS_EACH;
  // Stacks are reported by JVMs that rose starts or that have its agent, on nodes in which a fault may affect a thread.
  java_stacks.assign(nodes.size(), false);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool hit = std::any_of(schedule.faults.begin(), schedule.faults.end(), [&](const schedule::Fault& fault) {
      const auto index = static_cast<std::size_t>(&fault - schedule.faults.data());
      const bool threads = fault.kind == schedule::FaultKind::syscall || fault.kind == schedule::FaultKind::crash ||
                           fault.kind == schedule::FaultKind::pause || fault.kind == schedule::FaultKind::exception ||
                           fault.kind == schedule::FaultKind::clock;
      return fault.kind == schedule::FaultKind::partition ||
             (threads && may_be(chains[index].data.node, i));  // threads of both sides of a partition may wait
    });
    java_stacks[i] = hit && (!methods[i].empty() || (!attached[i] && jvm::may_run_java(config.nodes[i])));
  }
  // A process that is killed or stopped at a method's location cannot report its stack afterwards. So its JVM records
  // the stack beforehand (PlaceRequest::noted).
  for (std::size_t i = 0; i < schedule.faults.size(); ++i) {
    const schedule::Fault& fault = schedule.faults[i];
    const rose_chain& chain = chains[i].data;
    if ((fault.kind != schedule::FaultKind::crash && fault.kind != schedule::FaultKind::pause) || fault.before ||
        chain.conditions == 0)
      continue;
    for (auto& places : methods)
      for (jvm::PlaceRequest& place : places)
        place.noted = place.noted || place.entry == chain.first_condition + chain.conditions - 1;
  }
}

std::uint32_t Plan::stack_slots() const {
  return std::min(static_cast<std::uint32_t>(schedule.faults.size()) * stacks,
                  static_cast<std::uint32_t>(ROSE_MAX_STACKS));
}

std::string Plan::where(std::uint32_t node) const {
  if (node < nodes.size()) return nodes[node];
  if (node >= ROSE_CHAIN_NODES && node - ROSE_CHAIN_NODES < chains.size())
    return where(chains[node - ROSE_CHAIN_NODES].data.node);
  if (node < ROSE_ROLE_NODES || node - ROSE_ROLE_NODES >= roles.size()) return "any node";
  return fmt::format("the {}", roles[node - ROSE_ROLE_NODES]);
}

const Mark* Plan::mark_named(const std::string& name) const {
  const auto at = std::find_if(marks.begin(), marks.end(), [&](const Mark& one) { return one.name == name; });
  return at == marks.end() ? nullptr : &*at;
}

std::size_t Plan::chain_named(const std::string& name) const {
  if (const Mark* mark = mark_named(name); mark != nullptr) return mark->chain;
  const auto& faults = schedule.faults;
  return static_cast<std::size_t>(
      std::find_if(faults.begin(), faults.end(), [&](const auto& one) { return one.id == name; }) - faults.begin());
}

bool Plan::notifies() const {
  return std::any_of(notified.begin(), notified.end(), [](const auto& list) { return !list.empty(); });
}

bool Plan::rejects() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const rose_rule& rule) { return (rule.flags & ROSE_RULE_REJECT) != 0; });
}

bool Plan::has_links() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const rose_rule& rule) { return (rule.flags & ROSE_RULE_LINK) != 0; });
}

bool Plan::holds_packets() const {
  return std::any_of(links.begin(), links.end(), [](const rose_link& link) { return link.hold != 0; });
}

bool Plan::watches_limits() const {
  return std::any_of(schedule.faults.begin(), schedule.faults.end(), [this](const Fault& fault) {
    return fault.kind == FaultKind::descriptors || fault.kind == FaultKind::disk_full ||
           (fault.kind == FaultKind::memory && stacks > 0);
  });
}

bool Plan::has_methods() const {
  return std::any_of(methods.begin(), methods.end(), [](const auto& list) { return !list.empty(); });
}

bool Plan::holds_calls() const {
  return std::any_of(chains.begin(), chains.end(), [](const auto& chain) {
    return (chain.data.flags & (ROSE_IN_TURN | ROSE_HOLDS)) == ROSE_IN_TURN;
  });
}

bool Plan::needs_returns() const {
  if (std::any_of(conditions.begin(), conditions.end(),
                  [](const auto& condition) { return condition.data.kind == ROSE_ON_SYSCALL; })) {
    return true;
  }
  // Signals do not interrupt calls that never block. If the plan has only such calls, returns need not be watched.
  // Watching them would slow down every system call of the machine a little.
  static const std::set<std::string_view> patient = {
      "open",       "openat",    "openat2",         "creat",      "close",      "stat",   "lstat",     "fstat",
      "newfstatat", "statx",     "access",          "faccessat",  "faccessat2", "rename", "renameat",  "renameat2",
      "unlink",     "unlinkat",  "mkdir",           "mkdirat",    "rmdir",      "link",   "linkat",    "symlink",
      "symlinkat",  "readlink",  "readlinkat",      "truncate",   "ftruncate",  "fsync",  "fdatasync", "sync",
      "syncfs",     "fallocate", "sync_file_range", "pread64",    "pwrite64",   "preadv", "pwritev",   "lseek",
      "chmod",      "fchmod",    "fchmodat",        "chown",      "fchown",     "lchown", "fchownat",  "chdir",
      "fchdir",     "mmap",      "munmap",          "mprotect",   "msync",      "dup",    "dup2",      "dup3",
      "socket",     "bind",      "listen",          "setsockopt", "getsockopt", "execve", "execveat",  "utimensat",
      "getdents64", "getdents",  "mknod",           "mknodat"};
  for (const auto& list : notified) {
    for (const int number : list) {
      if (patient.count(kernel::syscall_name(number)) == 0) return true;
    }
  }
  return false;
}

Result<std::unique_ptr<Plan>> make_plan(const schedule::Schedule& schedule, const config::Config& config,
                                        bool allow_attached) {
  auto plan = std::make_unique<Plan>();
  plan->schedule = schedule;
  ROSE_CHECK(take_order(*plan));
  ROSE_CHECK(Planner(config, allow_attached, *plan).make());
  ROSE_TRY(plan->backend, choose_backend(*plan, config.inject.syscall));
  return plan;
}

}  // namespace rose::inject
