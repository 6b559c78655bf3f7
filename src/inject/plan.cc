#include "inject/plan.h"
#include "inject/clock.h"

#include <arpa/inet.h>
#include <capstone/capstone.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/address.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/units.h"
#include "inject/carry_out.h"
#include "inject/limits.h"
#include "inject/power.h"
#include "jvm/node.h"
#include "kernel/probe.h"
#include "symbols/symbols.h"

namespace rose::inject {
namespace {

using schedule::ConditionKind;
using schedule::Direction;
using schedule::Effect;
using schedule::Fault;
using schedule::FaultKind;

// Functions of the nodes' binaries, read once each.
class Binaries {
 public:
  // nullptr: not an ELF file with symbols.
  const std::vector<symbols::Function>* functions(const std::filesystem::path& path) {
    auto [at, fresh] = known_.try_emplace(path.string());
    if (fresh) {
      if (auto list = symbols::list_functions(path)) {
        at->second = std::move(*list);
      } else {
        last_error_ = std::move(list).error();
      }
    }
    return at->second ? &*at->second : nullptr;
  }
  [[nodiscard]] const std::optional<Error>& last_error() const { return last_error_; }

 private:
  std::map<std::string, std::optional<std::vector<symbols::Function>>> known_;
  std::optional<Error> last_error_;
};

Result<std::string> read_code(const std::filesystem::path& binary, std::uint64_t offset, std::uint64_t size) {
  const Fd file(::open(binary.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(ErrorKind::input, fmt::format("cannot read '{}'", binary.string()), errno);
  std::string code(std::min<std::uint64_t>(size, 16 << 20), '\0');
  const auto got = ::pread(file.get(), code.data(), code.size(), static_cast<off_t>(offset));
  code.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return code;
}

class Planner {
 public:
  Planner(const config::Config& config, bool allow_attached, Plan& plan)
      : config_(config), allow_attached_(allow_attached), plan_(plan) {}

  Result<void> make();

 private:
  Result<void> fault(std::size_t index);
  Result<void> mark(Mark& mark);
  void in_turn(Mark& mark, rose_chain& chain);
  [[nodiscard]] static bool holds_threads();
  Result<void> syscall_fault(const Fault& fault, PlannedChain& chain);
  Result<void> process_fault(const Fault& fault, PlannedChain& chain);
  Result<void> block(const Fault& fault, std::size_t index);
  Result<void> partition(const Fault& fault, std::size_t index);
  Result<void> bad_link(const Fault& fault, std::size_t index);
  Result<rose_rule> rule(const Fault& fault, std::size_t index);
  Result<void> clock(const Fault& fault, const PlannedChain& chain);
  Result<void> conditions(std::size_t chain, const std::vector<schedule::Condition>& list);
  Result<void> condition(std::size_t chain, std::size_t position, const schedule::Condition& source);
  // The `where`s that `@role` or a node's name mean; names the nodes it can be.
  Result<std::uint32_t> place(const std::string& name, bool injects);
  Result<std::uint32_t> role_index(const std::string& name, const std::string& function);
  [[nodiscard]] std::vector<std::size_t> nodes_at(std::uint32_t where) const;
  // A place in a function.
  struct Spot {
    const std::string& function;
    std::optional<std::uint64_t> offset{};
    std::optional<std::uint64_t> line{};
  };
  Result<void> functions(std::uint32_t entry, const Spot& spot, const std::vector<std::size_t>& nodes);
  Result<void> function(std::uint32_t entry, const Spot& spot, std::size_t node);
  void method(std::uint32_t entry, const Spot& spot, std::size_t node, const Fault* thrown = nullptr);
  Result<void> exception(const Fault& fault, std::size_t index);
  Result<void> edges();
  Result<void> order();
  Result<void> lists();

  [[nodiscard]] Result<std::size_t> node_index(const std::string& name, bool injects) const;
  [[nodiscard]] Unexpected refuse(const Fault& fault, ErrorKind kind, std::string what, std::string hint = {}) const {
    return fail(kind, fmt::format("{}: {}", label(fault), what), std::move(hint));
  }
  [[nodiscard]] Unexpected within(const Fault& fault, Error error) const { return Unexpected(std::move(error).in(label(fault))); }
  [[nodiscard]] std::string label(const Fault& fault) const {
    return fmt::format("{} '{}'", plan_.schedule.find_event(fault.id) != nullptr ? "event" : "fault", fault.id);
  }

  const config::Config& config_;
  const bool allow_attached_;
  Plan& plan_;
  Binaries binaries_;
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> site_at_;
  std::vector<std::string> role_functions_;
};

Result<std::size_t> Planner::node_index(const std::string& name, bool injects) const {
  for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
    if (config_.nodes[i].name != name) continue;
    if (injects && config_.nodes[i].attach && !allow_attached_) {
      return fail(ErrorKind::environment,
                  fmt::format("node '{}' was not started by rose and may be in production use", name),
                  "give --allow-attached to inject into it");
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
    return fail(ErrorKind::input, fmt::format("unknown role '{}'", *role), "[[role]] with its name and function says who it is");
  }
  // Whoever has it may be any of them.
  for (const auto& node : config_.nodes) ROSE_CHECK(node_index(node.name, injects));
  ROSE_TRY(const auto index, role_index(known->name, known->function));
  return ROSE_ROLE_NODES + index;
}

// Roles are told apart by name; those without one by their function.
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
  auto found = functions(ROSE_SITE_ROLE | index, Spot{function}, nodes_at(ROSE_ANY_NODE));
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
    return fail(ErrorKind::input, fmt::format("{} nodes: faults can be injected into {} at most",
                                                    config_.nodes.size(), static_cast<int>(ROSE_MAX_NODES)));
  }
  plan_.nodes = config_.node_names();
  plan_.clocks.resize(config_.nodes.size());
  plan_.on_host = config_.deployment.network == config::Network::host;
  for (const auto& node : config_.nodes) {
    plan_.attached.push_back(node.attach.has_value());
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
    return fail(ErrorKind::input,
                fmt::format("the schedule is too large: {} faults, {} conditions, {} orders, {} partitions and bad links, {} probes",
                            plan_.chains.size(), plan_.conditions.size(), plan_.edges.size(), plan_.rules.size(),
                            plan_.sites.size()),
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
    case FaultKind::disk_full: return ROSE_CHAIN_RESOURCE;
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
      case FaultKind::syscall:
        ROSE_CHECK(syscall_fault(fault, chain));
        break;
      case FaultKind::crash:
      case FaultKind::pause:
        ROSE_CHECK(process_fault(fault, chain));
        for (const std::size_t at : nodes_at(chain.data.node))
          if (auto can = fault.lose == schedule::Loss::nothing ? Result<void>{} : check_power(plan_.schedule, fault, config_.nodes[at]); !can)
            return within(fault, std::move(can).error());
        break;
      case FaultKind::partition:
        ROSE_CHECK(partition(fault, index));
        break;
      case FaultKind::network:
        ROSE_CHECK(bad_link(fault, index));
        break;
      case FaultKind::clock:
        ROSE_CHECK(clock(fault, chain));
        break;
      case FaultKind::exception:
        ROSE_CHECK(exception(fault, index));
        break;
      case FaultKind::descriptors:
      case FaultKind::memory:
      case FaultKind::cpu:
      case FaultKind::disk_full:
        for (const std::size_t at : nodes_at(chain.data.node))
          if (auto can = check_limit(fault, config_.nodes[at]); !can) return within(fault, std::move(can).error());
        break;
      case FaultKind::block:
        ROSE_CHECK(block(fault, index));
        break;
    }
  }
  ROSE_CHECK(conditions(index, fault.when));
  {
    PlannedChain& chain = plan_.chains[index];
    for (const std::size_t node : nodes_at(chain.data.node)) {
      if (!chain.call || !config_.nodes[node].attach || config_.nodes[node].attach->exec) continue;
      plan_.unsupervised = fmt::format("fault '{}': node '{}' was not started by rose, so its syscalls cannot be changed",
                                       fault.id, config_.nodes[node].name);
    }
    // A clock of a node that is known is wrong from its first instruction on.
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
    chain.data.flags |= ROSE_WAITS_FOR_CALL;  // of the workload, with `rose step`
  } else {
    auto node = place(mark.carrier.node, false);
    if (!node) return within(mark.carrier, std::move(node).error());
    chain.data.node = *node;
    in_turn(mark, chain.data);
  }
  plan_.chains.push_back(std::move(chain));
  return conditions(mark.chain, mark.carrier.when);
}

// An event that can be held waits for its turn: its thread does, in the place or ahead of the call that would make it come. A call
// whose result counts can't be: it is known only when it has been made.
void Planner::in_turn(Mark& mark, rose_chain& chain) {
  const auto ordered = std::find_if(plan_.order.begin(), plan_.order.end(), [&](const auto& one) { return one.name == mark.name; });
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
  if (!answered && fault.effect == Effect::none && fault.delay_ns == 0 &&
      fault.then_do == schedule::ThenDo::nothing) {
    return refuse(fault, ErrorKind::input, "it changes nothing", "give an `error`, a `result`, a `delay` or an `effect`");
  }
  if (fault.delay_ns > 0 && fault.then_do == schedule::ThenDo::crash) {
    return refuse(fault, ErrorKind::input, "`delay` together with then = \"crash\" is not possible in this version of rose",
                  "leave one of them out");
  }
  if (fault.error < 0 || fault.error > 4095) {
    return refuse(fault, ErrorKind::input, fmt::format("error {} is not an errno", fault.error), "1 to 4095");
  }
  // How restarts are asked for inside the kernel; handed to a program as a result they would restart the call.
  if (fault.result && *fault.result <= -1 && *fault.result >= -4095) {
    return refuse(fault, ErrorKind::input, fmt::format("result {} would be an error", *fault.result),
                  fmt::format("say error = \"{}\"", kernel::errno_name(static_cast<int>(-*fault.result))));
  }
  if (fault.effect == Effect::none) return {};
  for (const int number : chain.call->numbers()) {
    const bool can = fault.effect == Effect::full ? can_carry_out(number) : can_carry_out_partly(number);
    if (can) continue;
    if (fault.effect == Effect::full && !answered && fault.then_do == schedule::ThenDo::nothing) continue;
    return refuse(fault, ErrorKind::input,
                  fmt::format("effect = {} is not possible for '{}' in this version of rose",
                              fault.effect == Effect::full ? "\"full\"" : "{ bytes = n }",
                              kernel::syscall_name(number)),
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
    chain.data.signal = 19;  // SIGSTOP: stops the process there and then, the freezer follows
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
        return refuse(fault, ErrorKind::environment, fmt::format("a thread cannot be made to wait at a function here: {}", found.detail), found.remedy);
    }
    chain.data.count = static_cast<__u32>(fault.count);
    plan_.holders.push_back(index);
    const auto where = nodes_at(chain.data.node);
    if (auto ok = functions(block_entry(index), Spot{fault.function, fault.offset, fault.at_line}, where); !ok)
      return within(fault, std::move(ok).error().in("`at`"));
    return {};
  }
  auto matcher = CallMatcher::compile(fault.call);
  if (!matcher) return within(fault, std::move(matcher).error().in("`at`"));
  chain.call = std::move(*matcher);
  return {};
}

Result<void> Planner::partition(const Fault& fault, std::size_t index) {
  if (!(fault.loss > 0) || fault.loss > 1) {
    return refuse(fault, ErrorKind::input, fmt::format("loss {} is out of range", fault.loss), "0 < loss <= 1");
  }
  ROSE_TRY(auto cut, rule(fault, index));
  cut.threshold = fault.loss >= 1 ? ~0U : static_cast<__u32>(std::floor(fault.loss * 4294967295.0));
  plan_.rules.push_back(cut);
  plan_.links.emplace_back();
  plan_.holds.emplace_back();
  return {};
}

Result<void> Planner::bad_link(const Fault& fault, std::size_t index) {
  ROSE_TRY(auto bad, rule(fault, index));
  bad.flags |= ROSE_RULE_LINK;
  const auto& source = fault.link;
  const bool netns = config_.deployment.network == config::Network::netns;
  if (source.corrupt > 0 && !netns) {
    return refuse(fault, ErrorKind::environment, "`corrupt` is not possible in a \"host\" deployment",
                  "the loopback interface has no checksums, so programs would read what no network lets through; "
                  "set [deployment] network = \"netns\"");
  }
  if (source.payload.size() > ROSE_PAYLOAD_BYTES) {
    return refuse(fault, ErrorKind::input, fmt::format("`payload` has {} bytes", source.payload.size()),
                  fmt::format("at most {}", static_cast<int>(ROSE_PAYLOAD_BYTES)));
  }
  // Chances out of 2^32; 1 is always.
  const auto chance = [](double share) { return static_cast<__u64>(std::llround(share * 4294967296.0)); };
  rose_link link{};
  link.seed = (static_cast<__u64>(fault.seed) + plan_.rules.size()) * 0x9e3779b97f4a7c15ULL;
  link.count = static_cast<__u64>(fault.count);
  link.times = fault.times;
  link.connections = source.connections ? 1 : 0;
  link.lose = chance(source.loss);
  link.duplicate = chance(source.duplicate);
  link.corrupt = chance(source.corrupt);
  link.hold = source.delay_ns > 0 || source.rate > 0 ? 1 : 0;
  link.payload_length = static_cast<__u32>(source.payload.size());
  std::copy(source.payload.begin(), source.payload.end(), link.payload);
  HoldRule hold;
  if (link.hold != 0) hold = {source.delay_ns, source.jitter_ns, chance(source.reorder), source.rate, link.seed};
  plan_.rules.push_back(bad);
  plan_.links.push_back(link);
  plan_.holds.push_back(hold);
  return {};
}

Result<void> Planner::clock(const Fault& fault, const PlannedChain& chain) {
  if (auto able = NodeClocks::check(); !able) return within(fault, std::move(able).error());
  for (const std::size_t node : nodes_at(chain.data.node)) {
    if (config_.nodes[node].attach) {
      return refuse(fault, ErrorKind::environment,
                    fmt::format("node '{}' was not started by rose, so its clocks cannot be changed", config_.nodes[node].name),
                    "start it with `command`");
    }
    auto& calls = plan_.clocks[node];
    calls = fault.clock.monotonic || calls == deploy::ClockCalls::all ? deploy::ClockCalls::all : deploy::ClockCalls::realtime;
  }
  return {};
}

// Whose packets: what a partition and a bad link have in common.
Result<rose_rule> Planner::rule(const Fault& fault, std::size_t index) {
  const bool netns = config_.deployment.network == config::Network::netns;
  const auto number = static_cast<__u32>(plan_.rules.size());
  rose_rule rule{};
  rule.chain = static_cast<__u32>(index);
  rule.direction = fault.direction == Direction::in    ? ROSE_IN
                   : fault.direction == Direction::out ? ROSE_OUT
                                                       : ROSE_BOTH;
  if (fault.protocol == "tcp") {
    rule.protocol = IPPROTO_TCP;
  } else if (fault.protocol == "udp") {
    rule.protocol = IPPROTO_UDP;
  } else if (!fault.protocol.empty()) {
    return refuse(fault, ErrorKind::input, fmt::format("unknown protocol '{}'", fault.protocol), "\"tcp\" or \"udp\"");
  }
  if (fault.reject) rule.flags |= ROSE_RULE_REJECT;
  if (!fault.ports.empty()) rule.flags |= ROSE_RULE_PORTS;
  for (const auto port : fault.ports) plan_.rule_ports.push_back({.rule = number, .port = port});

  const auto add = [](__u64* set, std::size_t node) { set[node / 64] |= __u64{1} << (node % 64); };
  const auto has = [](const __u64* set, std::size_t node) { return ((set[node / 64] >> (node % 64)) & 1) != 0; };
  std::vector<std::size_t> ends;
  const std::uint32_t own = plan_.chains[index].data.node;
  if (own >= ROSE_ROLE_NODES) {
    rule.flags |= ROSE_RULE_BOUND;
    if (!fault.side.empty()) return refuse(fault, ErrorKind::input, "a role and nodes cannot stand on one side");
  } else {
    add(rule.side, own);
  }
  for (const std::size_t node : nodes_at(own)) ends.push_back(node);
  for (const auto& name : fault.side) {
    auto node = node_index(name, true);
    if (!node) return within(fault, std::move(node).error());
    add(rule.side, *node);
    ends.push_back(*node);
  }
  // A bad link meets a packet at its sender's port.
  const bool everywhere = fault.kind == FaultKind::network && netns;
  for (const std::size_t node : everywhere ? nodes_at(ROSE_ANY_NODE) : ends) {
    if (std::find(plan_.cut.begin(), plan_.cut.end(), node) == plan_.cut.end()) plan_.cut.push_back(node);
  }
  std::size_t peers = 0;
  for (const auto& name : fault.peers) {
    const bool is_node = std::find(plan_.nodes.begin(), plan_.nodes.end(), name) != plan_.nodes.end();
    if (const auto range = parse_address_range(name); range && !is_node) {
      if (fault.reject && !netns && !range->is_loopback()) {
        return refuse(fault, ErrorKind::environment,
                      fmt::format("packets to and from '{}' cannot be answered in a \"host\" deployment", name),
                      "leave action = \"reject\" out, or set [deployment] network = \"netns\"");
      }
      rose_net net{.prefix = static_cast<__u32>(32 + range->prefix), .rule = number, .ip = {}};
      std::copy(range->address.bytes.begin(), range->address.bytes.end(), net.ip);
      plan_.rule_nets.push_back(net);
      rule.flags |= ROSE_RULE_NETS;
      ++peers;
      continue;
    }
    if (schedule::role_of(name)) {
      return refuse(fault, ErrorKind::input, fmt::format("'{}' in `peers` is a role", name),
                    "a role can be the fault's `node`: name it there and the other side in `peers` (\"in\" and \"out\" swap)");
    }
    auto peer = node_index(name, true);
    if (!peer) return within(fault, std::move(peer).error().in("`peers`"));
    if (has(rule.side, *peer)) return refuse(fault, ErrorKind::input, "a node has no link to itself");
    add(rule.peers, *peer);
    ends.push_back(*peer);
    ++peers;
  }
  if (fault.peers.empty()) {
    rule.flags |= ROSE_RULE_OTHERS;
    for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
      if (has(rule.side, i)) continue;
      ends.push_back(i);
      ++peers;
    }
  }
  if (peers == 0) return refuse(fault, ErrorKind::input, "there is no other node to have a link to");
  for (const std::size_t end : ends) {
    if (!netns || !config_.nodes[end].attach) continue;
    return refuse(fault, ErrorKind::environment,
                  fmt::format("node '{}' was not started by rose and has no place in the netns deployment's network",
                              config_.nodes[end].name),
                  "set [deployment] network = \"host\"");
  }
  return rule;
}

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

// In the binaries or JVMs of any of the nodes.
Result<void> Planner::functions(std::uint32_t entry, const Spot& spot, const std::vector<std::size_t>& nodes) {
  std::optional<Error> first;
  bool found = false;
  for (const std::size_t node : nodes) {
    if (auto ok = function(entry, spot, node); ok) {
      found = true;
    } else if (!first) {
      first = std::move(ok).error();
    }
  }
  if (found) return {};
  return Unexpected(std::move(*first));
}

// Which methods there are only the JVM knows, once it has loaded their classes.
void Planner::method(std::uint32_t entry, const Spot& spot, std::size_t node, const Fault* thrown) {
  jvm::PlaceRequest place{.entry = entry, .pattern = spot.function, .throws = {}, .message = {}};
  if (spot.offset && *spot.offset > 0) place.at = jvm::At::offset, place.number = *spot.offset;
  if (spot.line) place.at = jvm::At::line, place.number = *spot.line;
  if (thrown != nullptr) {
    place.throws = thrown->throws;
    place.message = thrown->message.empty() ? "injected by rose" : thrown->message;
  }
  plan_.methods[node].push_back(std::move(place));
}

Result<void> Planner::exception(const Fault& fault, std::size_t index) {
  auto& chain = plan_.chains[index];
  chain.data.flags |= ROSE_WAITS_FOR_CALL;
  chain.call_count = static_cast<std::uint64_t>(fault.count);
  const auto entry = ROSE_SITE_THROW | static_cast<std::uint32_t>(plan_.throws.size());
  plan_.throws.push_back({.chain = static_cast<__u32>(index), .reserved = 0, .count = chain.call_count, .times = fault.times});
  bool found = false;
  for (const std::size_t node : nodes_at(chain.data.node)) {
    if (!jvm::may_be_method(config_.nodes[node], fault.function)) continue;
    found = true;
    method(entry, Spot{fault.function, fault.offset, fault.at_line}, node, &fault);
  }
  if (found) return {};
  return refuse(fault, ErrorKind::input,
                fmt::format("'{}' is no method of a JVM that {} is known to run", fault.function, plan_.where(chain.data.node)),
                "names are like org.x.Store.append; a node runs a JVM when its command or binary is java, a jar or a script, or its sources are .java files");
}

Result<void> Planner::function(std::uint32_t entry, const Spot& spot, std::size_t node) {
  const std::string& name = spot.function;
  const auto& place_in = spot.offset;
  if (jvm::is_method(config_.nodes[node], name)) {
    method(entry, spot, node);
    return {};
  }
  if (spot.line) {
    return fail(ErrorKind::input, fmt::format("`line` is for methods of JVMs, and '{}' is none of node '{}'", name, config_.nodes[node].name),
                "name a place inside a native function by its `offset`; a node runs a JVM when its command or binary is java, a jar or a script, or its sources are .java files");
  }
  const auto& config = config_.nodes[node];
  std::vector<std::string> names;
  std::size_t readable = 0, found = 0;
  std::optional<Error> misplaced;
  for (const auto& binary : config.binaries) {
    const auto* functions = binaries_.functions(binary);
    if (functions == nullptr) continue;
    ++readable;
    for (const auto& function : *functions) {
      if (!symbols::may_be_named(name, function.linkage_name, function.name) || !symbols::name_matches(name, function)) continue;
      const std::uint64_t offset = place_in.value_or(0);
      if (offset > 0) {
        if (function.size > 0 && offset >= function.size) {
          misplaced = Error{ErrorKind::input,
                            fmt::format("offset {:#x} is outside of '{}'", offset, function.name),
                            fmt::format("it is {:#x} bytes long", function.size)};
          continue;
        }
        ROSE_TRY(const auto code, read_code(binary, function.offset, function.size > 0 ? function.size : offset + 16));
        if (!is_instruction_boundary(code, offset)) {
          misplaced = Error{ErrorKind::input,
                            fmt::format("no instruction begins at offset {:#x} of '{}'", offset, function.name),
                            "a probe inside an instruction would change what the program does"};
          continue;
        }
      }
      ++found;
      // An entry is seen once, however often Go begins anew.
      const auto key = std::make_pair(binary, offset == 0 ? function.probe_offset : function.offset + offset);
      const auto [at, fresh] = site_at_.try_emplace(key, plan_.sites.size());
      if (fresh) plan_.sites.push_back({.binary = binary, .offset = key.second, .conditions = {}});
      auto& list = plan_.sites[at->second].conditions;
      // Aliases: two names of one address are still one entry.
      if (std::find(list.begin(), list.end(), entry) != list.end()) continue;
      // A role is taken before conditions ask who has it.
      list.insert((entry & ROSE_SITE_ROLE) != 0 ? list.begin() : list.end(), entry);
    }
  }
  if (found > 0) return {};
  if (misplaced) return Unexpected(std::move(*misplaced));
  const auto binaries = fmt::format("{}", fmt::join(config.binaries, "', '"));
  if (readable == 0) {
    return fail(ErrorKind::input,
                fmt::format("no functions of node '{}' are known{}", config.name,
                            binaries_.last_error() ? ": " + binaries_.last_error()->message : ""),
                jvm::may_be_method(config, name) ? "name its executables and shared libraries with `binary = [...]` in its [[node]]; a method of Java by "
                                                   "its class with the package"
                                                 : "name its executables and shared libraries with `binary = [...]` in its [[node]]");
  }
  for (const auto& binary : config.binaries) {
    const auto* functions = binaries_.functions(binary);
    if (functions == nullptr) continue;
    for (const auto& function : *functions) names.push_back(function.name.substr(0, function.name.find('(')));
  }
  auto hint = did_you_mean(name, names);
  if (hint.empty()) hint = "functions that were inlined everywhere or stripped have no entry to wait for";
  return fail(ErrorKind::input, fmt::format("no function '{}' in '{}'", name, binaries), std::move(hint));
}

// `after` as edges from the fault to those that wait for it; `until` waits for its own fault.
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
    // The workload's beginning is like one more fault to wait for.
    if (chain.flags & ROSE_AT_WORKLOAD) ++chain.after_left;
    chain.progress = chain.after_left > 0 && (chain.flags & ROSE_IN_TURN) == 0 ? ROSE_PROGRESS(ROSE_CLOSED, 0, 0) : ROSE_PROGRESS(0, 0, 0);
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

// A fault that waits for itself, over whatever detour, never fires.
Result<void> Planner::order() {
  std::vector<int> left(plan_.chains.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < plan_.chains.size(); ++i) {
    left[i] = static_cast<int>(plan_.chains[i].data.after_left) -
              ((plan_.chains[i].data.flags & ROSE_AT_WORKLOAD) ? 1 : 0);
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
      return refuse(*plan_.chains[i].fault, ErrorKind::input, "its `after` leads back to itself",
                    "the order of faults must not be a circle");
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
    const auto throws = std::count_if(plan_.methods[i].begin(), plan_.methods[i].end(), [](const auto& place) { return !place.throws.empty(); });
    if (throws > ROSE_MAX_THROWS || plan_.methods[i].size() > ROSE_MAX_LIST) {
      return fail(ErrorKind::input,
                  fmt::format("{} exceptions and {} conditions on methods of node '{}'", throws, plan_.methods[i].size() - static_cast<std::size_t>(throws),
                              config_.nodes[i].name),
                  fmt::format("at most {} and {} on one node", static_cast<int>(ROSE_MAX_THROWS), static_cast<int>(ROSE_MAX_LIST) - ROSE_MAX_THROWS));
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

// Faults wait for what the order puts before them already, by `after`; steps do, too; events come when they come.
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
  // JVMs that rose starts, or that have its agent for their methods, where a fault may hit a thread.
  java_stacks.assign(nodes.size(), false);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool hit = std::any_of(schedule.faults.begin(), schedule.faults.end(), [&](const schedule::Fault& fault) {
      const auto index = static_cast<std::size_t>(&fault - schedule.faults.data());
      const bool threads = fault.kind == schedule::FaultKind::syscall || fault.kind == schedule::FaultKind::crash || fault.kind == schedule::FaultKind::pause ||
                           fault.kind == schedule::FaultKind::exception;
      return threads && may_be(chains[index].data.node, i);
    });
    java_stacks[i] = hit && (!methods[i].empty() || (!attached[i] && jvm::runs_java(config.nodes[i])));
  }
  // A process that is killed or stopped at a method's place tells nothing afterwards.
  for (std::size_t i = 0; i < schedule.faults.size(); ++i) {
    const schedule::Fault& fault = schedule.faults[i];
    const rose_chain& chain = chains[i].data;
    if ((fault.kind != schedule::FaultKind::crash && fault.kind != schedule::FaultKind::pause) || fault.before || chain.conditions == 0) continue;
    for (auto& places : methods)
      for (jvm::PlaceRequest& place : places) place.noted = place.noted || place.entry == chain.first_condition + chain.conditions - 1;
  }
}

std::uint32_t Plan::stack_slots() const {
  return std::min(static_cast<std::uint32_t>(schedule.faults.size()) * stacks, static_cast<std::uint32_t>(ROSE_MAX_STACKS));
}

std::string Plan::where(std::uint32_t node) const {
  if (node < nodes.size()) return nodes[node];
  if (node >= ROSE_CHAIN_NODES && node - ROSE_CHAIN_NODES < chains.size()) return where(chains[node - ROSE_CHAIN_NODES].data.node);
  if (node < ROSE_ROLE_NODES || node - ROSE_ROLE_NODES >= roles.size()) return "any node";
  return fmt::format("the {}", roles[node - ROSE_ROLE_NODES]);
}

bool Plan::notifies() const {
  return std::any_of(notified.begin(), notified.end(), [](const auto& list) { return !list.empty(); });
}

bool Plan::rejects() const {
  return std::any_of(rules.begin(), rules.end(), [](const rose_rule& rule) { return (rule.flags & ROSE_RULE_REJECT) != 0; });
}

bool Plan::has_links() const {
  return std::any_of(rules.begin(), rules.end(), [](const rose_rule& rule) { return (rule.flags & ROSE_RULE_LINK) != 0; });
}

bool Plan::holds_packets() const {
  return std::any_of(links.begin(), links.end(), [](const rose_link& link) { return link.hold != 0; });
}

bool Plan::has_methods() const {
  return std::any_of(methods.begin(), methods.end(), [](const auto& list) { return !list.empty(); });
}

bool Plan::holds_calls() const {
  return std::any_of(chains.begin(), chains.end(), [](const auto& chain) { return (chain.data.flags & (ROSE_IN_TURN | ROSE_HOLDS)) == ROSE_IN_TURN; });
}

bool Plan::needs_returns() const {
  if (std::any_of(conditions.begin(), conditions.end(),
                  [](const auto& condition) { return condition.data.kind == ROSE_ON_SYSCALL; })) {
    return true;
  }
  // Calls that never wait for anybody are never interrupted: with only those the watching, which costs each syscall
  // of the machine a little, is left out.
  static const std::set<std::string_view> patient = {
      "open",     "openat",   "openat2",   "creat",     "close",     "stat",      "lstat",     "fstat",    "newfstatat",
      "statx",    "access",   "faccessat", "faccessat2", "rename",   "renameat",  "renameat2", "unlink",   "unlinkat",
      "mkdir",    "mkdirat",  "rmdir",     "link",      "linkat",    "symlink",   "symlinkat", "readlink", "readlinkat",
      "truncate", "ftruncate", "fsync",    "fdatasync", "sync",      "syncfs",    "fallocate", "sync_file_range",
      "pread64",  "pwrite64", "preadv",    "pwritev",   "lseek",     "chmod",     "fchmod",    "fchmodat", "chown",
      "fchown",   "lchown",   "fchownat",  "chdir",     "fchdir",    "mmap",      "munmap",    "mprotect", "msync",
      "dup",      "dup2",     "dup3",      "socket",    "bind",      "listen",    "setsockopt", "getsockopt",
      "execve",   "execveat", "utimensat", "getdents64", "getdents",  "mknod",    "mknodat"};
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

bool is_instruction_boundary(std::string_view code, std::uint64_t offset) {
  if (offset == 0) return true;
  csh handle = 0;
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) return false;
  cs_insn* instruction = cs_malloc(handle);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(code.data());
  std::size_t left = code.size();
  std::uint64_t address = 0;
  bool found = false;
  // endbr64 and the like are known to Capstone 4; what is not ends the sweep, and nothing behind it is trusted.
  while (!found && address < offset && cs_disasm_iter(handle, &bytes, &left, &address, instruction)) {
    found = address == offset;
  }
  cs_free(instruction, 1);
  cs_close(&handle);
  return found && left > 0;
}

}  // namespace rose::inject
