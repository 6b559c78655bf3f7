// A schedule made ready for the kernel: chains of conditions with numbers for names, probe sites, partition rules,
// and what the seccomp supervisor has to match. Pure but for looking functions up in the nodes' binaries; refuses
// everything that could not be done to the letter, so that nothing is accepted and then ignored.
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
  std::optional<CallMatcher> call;  // syscall
  std::optional<Regex> log;
  std::string words;  // "2nd entry of RaftLogCreate on n1"
};

// One fault, or the `until` of one (then `fault` is that).
struct PlannedChain {
  rose_chain data{};
  const schedule::Fault* fault = nullptr;
  std::optional<CallMatcher> call;  // syscall faults and `before`
  std::uint64_t call_count = 1;     // the nth matching call
};

struct Site {
  std::filesystem::path binary;
  std::uint64_t offset = 0;
  std::vector<std::uint32_t> conditions;  // and, ahead of them, roles (with ROSE_SITE_ROLE)
};

// A name of the schedule's order that is no fault.
struct Mark {
  std::string name;
  bool step = false;  // of the workload; else an event
  std::size_t chain = 0;
  schedule::Fault carrier;  // what its chain is about: its name, node, conditions, how long it is held at most, and (a
                            // step) what it waits for
};

struct Plan {
  schedule::Schedule schedule;  // `fault` and `source` point into it: a Plan does not move
  std::vector<std::string> nodes;
  std::vector<PlannedChain> chains;  // those of the faults come first, in their order
  std::deque<Mark> marks;
  std::vector<schedule::OrderedName> order;  // the schedule's, taken apart
  std::vector<PlannedCondition> conditions;
  std::vector<std::uint32_t> edges;
  std::vector<std::string> roles;  // "leader", or the function of a role without a name
  std::vector<Site> sites;
  std::vector<std::size_t> holders;                     // chains that make a thread wait at a place in its program
  std::vector<std::size_t> losses;                      // faults in which the power goes
  std::vector<rose_rule> rules;                         // one a partition or bad link
  std::vector<rose_link> links;                         // beside them: what bad links do; zeros for partitions
  std::vector<HoldRule> holds;                          // beside them
  std::vector<std::vector<jvm::PlaceRequest>> methods;  // by node: places in methods of its JVMs
  std::vector<rose_throw> throws;                       // one an exception
  std::vector<rose_rule_port> rule_ports;
  std::vector<rose_net> rule_nets;
  std::vector<std::size_t> cut;            // nodes whose ports must be watched
  std::vector<deploy::ClockCalls> clocks;  // by node: which clocks may be changed
  std::vector<std::vector<int>> notified;  // by node: syscalls that faults and conditions are about
  std::string unsupervised;  // a node that rose did not start has some of them: only the override backend can do it
  BackendChoice backend;
  bool on_host = false;           // nodes share the host's network
  std::vector<bool> attached;     // by node: rose did not start it
  std::vector<bool> enters;       // by node: it comes in through `rose exec`
  std::uint32_t stacks = 0;       // that are taken of the threads that each fault hits
  std::vector<bool> java_stacks;  // by node: its JVMs tell where their threads are, for that; empty: no node's do

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // What is said of a node or of whoever has a role may be about this node.
  [[nodiscard]] static bool may_be(std::uint32_t where, std::size_t node) {
    return where == node || where >= ROSE_ROLE_NODES;
  }
  // Calls are decided by the kernel's program; what it cannot do itself is left to userspace.
  [[nodiscard]] bool in_kernel() const { return backend.backend == CallBackend::override_return; }
  // The event or step of that name; null: there is none.
  [[nodiscard]] const Mark* mark_named(const std::string& name) const;
  // Of a fault, event or step.
  [[nodiscard]] std::size_t chain_named(const std::string& name) const;
  // The first faults have room for that many each.
  void take_stacks(const config::Config& config);
  [[nodiscard]] std::uint32_t stack_slots() const;
  // "n1", "the leader".
  [[nodiscard]] std::string where(std::uint32_t node) const;
  [[nodiscard]] bool notifies() const;
  [[nodiscard]] bool rejects() const;
  [[nodiscard]] bool has_links() const;
  // Some packets must wait, or be let through by turns.
  [[nodiscard]] bool holds_packets() const;
  [[nodiscard]] bool has_methods() const;
  // Descriptors or room on a disk run out.
  [[nodiscard]] bool lacks() const;
  // Events' calls that come before their turn.
  [[nodiscard]] bool holds_calls() const;
  // The returns of syscalls must be watched: for conditions, or because a signal can make a notified call happen twice.
  [[nodiscard]] bool needs_returns() const;
};

[[nodiscard]] Result<std::unique_ptr<Plan>> make_plan(const schedule::Schedule& schedule, const config::Config& config,
                                                      bool allow_attached);

// What stands for a block in the lists of places.
[[nodiscard]] constexpr std::uint32_t block_entry(std::size_t chain) {
  return ROSE_SITE_BLOCK | static_cast<std::uint32_t>(chain);
}

// Does an instruction begin at this offset of the function whose code stands in `code`?
[[nodiscard]] bool is_instruction_boundary(std::string_view code, std::uint64_t offset);

}  // namespace rose::inject
