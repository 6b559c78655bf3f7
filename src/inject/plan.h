// A schedule in the form that BPF programs need: chains of conditions with numbers instead of names, probe sites,
// partition rules, and the calls that the seccomp supervisor has to match. Making a plan reads the nodes' binaries and
// checks what this machine supports, but does not touch the deployment. It refuses everything that cannot be carried
// out exactly, so that nothing is accepted and then ignored.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/regex.h"
#include "base/result.h"
#include "config/config.h"
#include "deploy/clock_calls.h"
#include "inject/backend.h"
#include "inject/link.h"
#include "inject/match.h"
#include "inject/shared.h"
#include "jvm/session.h"
#include "schedule/order.h"
#include "schedule/schedule.h"

namespace rose::inject {

struct PlannedCondition {
  rose_condition data{};
  const schedule::Condition* source = nullptr;
  std::optional<CallMatcher> call;  // for syscall conditions
  std::optional<Regex> log;
  std::string words;  // "2nd entry of RaftLogCreate on n1"
};

// The chain of a fault, of its `until`, or of an event or step. `fault` points to the fault in the first two cases, and
// to Mark::carrier otherwise.
struct PlannedChain {
  rose_chain data{};
  const schedule::Fault* fault = nullptr;
  std::optional<CallMatcher> call;  // for syscall faults and `before`
  std::uint64_t call_count = 1;     // the fault fires at the matching call with this number
};

struct Site {
  std::filesystem::path binary;
  std::uint64_t offset = 0;
  std::vector<std::uint32_t> conditions;  // first roles (ROSE_SITE_ROLE), then conditions and blocks (ROSE_SITE_BLOCK)
};

// A name in the schedule's order that is not a fault.
struct Mark {
  std::string name;
  bool step = false;  // a step of the workload; otherwise an event
  std::size_t chain = 0;
  // The contents of its chain in the form of a fault: name, node, conditions, and the maximum time for which a thread
  // is held. For a step, and for an event that can be held, `after` contains the names that must come first.
  schedule::Fault carrier;
};

struct Plan {
  schedule::Schedule schedule;  // chains and conditions point into it, so a Plan must not be moved
  std::vector<std::string> nodes;
  std::vector<PlannedChain> chains;  // chains of faults come first, in the order of the schedule
  std::deque<Mark> marks;
  std::vector<schedule::OrderedName> order;  // the schedule's order, parsed
  std::vector<PlannedCondition> conditions;
  std::vector<std::uint32_t> edges;
  std::vector<std::string> roles;  // "leader", or the function of a role without a name
  std::vector<Site> sites;
  std::vector<std::size_t> holders;  // chains that hold a thread at a location in its program
  std::vector<std::size_t> losses;   // faults with power loss
  std::vector<rose_rule> rules;      // one per partition or bad link
  std::vector<rose_link> links;      // in parallel to rules: effects of bad links; zeros for partitions
  std::vector<HoldRule> holds;       // in parallel to rules
  std::vector<std::vector<jvm::PlaceRequest>> methods;  // by node: locations in methods of its JVMs
  std::vector<rose_throw> throws;                       // one per exception
  std::vector<rose_rule_port> rule_ports;
  std::vector<rose_net> rule_nets;
  std::vector<std::size_t> cut;            // nodes whose bridge ports must be watched
  std::vector<deploy::ClockCalls> clocks;  // by node: which clocks may be changed
  std::vector<std::vector<int>> notified;  // by node: system calls in faults and conditions
  // A text for messages. It names a call in the schedule that concerns a node that rose did not start. Such a call
  // requires the override backend. Empty if there is none.
  std::string unsupervised;
  BackendChoice backend;
  bool on_host = false;            // nodes share the host's network
  std::vector<bool> attached;      // by node: rose did not start it
  std::vector<bool> in_container;  // by node: rose starts it in a container
  std::vector<bool> enters;        // by node: it starts through `rose exec`
  std::uint32_t stacks = 0;        // at most this many stacks are recorded per fault
  std::vector<bool> java_stacks;   // by node: its JVMs report stacks; empty: no node's JVMs do

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // True if `where`, a node or a role, may refer to this node.
  [[nodiscard]] static bool may_be(std::uint32_t where, std::size_t node) {
    return where == node || where >= ROSE_ROLE_NODES;
  }
  // True if the override backend is used, that is, a BPF program decides about calls (backend.h).
  [[nodiscard]] bool in_kernel() const { return backend.backend == CallBackend::override_return; }
  // The event or step with that name, or null.
  [[nodiscard]] const Mark* mark_named(const std::string& name) const;
  // The chain of a fault, event or step.
  [[nodiscard]] std::size_t chain_named(const std::string& name) const;
  // Reserves space for stacks. If there are many faults, fewer stacks are recorded for each of them.
  void take_stacks(const config::Config& config);
  [[nodiscard]] std::uint32_t stack_slots() const;
  // A node or role for messages: "n1", "the leader".
  [[nodiscard]] std::string where(std::uint32_t node) const;
  [[nodiscard]] bool notifies() const;
  [[nodiscard]] bool rejects() const;
  [[nodiscard]] bool has_links() const;
  // True if packets must be delayed or limited in rate.
  [[nodiscard]] bool holds_packets() const;
  [[nodiscard]] bool has_methods() const;
  // True if the programs must detect when a node meets a limit of descriptors, of disk space or, for stacks, of memory.
  [[nodiscard]] bool watches_limits() const;
  // True if a call that would complete an event may have to be held until the event's turn.
  [[nodiscard]] bool holds_calls() const;
  // True if returns of system calls must be watched: for conditions, or because a signal may interrupt a call of which
  // seccomp has notified rose. The thread then repeats the call, which must not be counted again.
  [[nodiscard]] bool needs_returns() const;
};

[[nodiscard]] Result<std::unique_ptr<Plan>> make_plan(const schedule::Schedule& schedule, const config::Config& config,
                                                      bool allow_attached);

// The number that represents a block in Site::conditions and in the list of a method's location.
[[nodiscard]] constexpr std::uint32_t block_entry(std::size_t chain) {
  return ROSE_SITE_BLOCK | static_cast<std::uint32_t>(chain);
}

// True if an instruction begins at this offset in `code`, the code of a function.
[[nodiscard]] bool is_instruction_boundary(std::string_view code, std::uint64_t offset);

}  // namespace rose::inject
