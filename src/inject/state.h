// User space's access to the state of an armed schedule, which is in memory shared with BPF programs. Each step is
// carried out by a function of bpf/inject.h that uses atomic operations, so any thread can make steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "inject/plan.h"
#include "inject/shared.h"

namespace rose::inject {

// Pointers to the arrays: mapped BPF maps, or ordinary memory in tests.
struct SharedArrays {
  rose_chain* chains = nullptr;
  rose_condition* conditions = nullptr;
  rose_word* edges = nullptr;
  rose_word* groups = nullptr;  // by group number; 0 is unused
  rose_settings* settings = nullptr;
  rose_role* roles = nullptr;
};

class State {
 public:
  // Copies the plan's chains, conditions and edges to the arrays.
  State(const Plan& plan, SharedArrays arrays);

  // Sets a function that is called after each transition that this class makes, because a fault may have to be carried
  // out.
  void on_change(std::function<void()> ring) { ring_ = std::move(ring); }

  [[nodiscard]] const rose_chain& chain(std::size_t i) const { return arrays_.chains[i]; }
  [[nodiscard]] const rose_condition& condition(std::size_t i) const { return arrays_.conditions[i]; }
  [[nodiscard]] rose_settings& settings() { return *arrays_.settings; }

  // Snapshots of single words that other threads or programs may be changing.
  [[nodiscard]] std::uint32_t state(std::size_t chain) const { return load(arrays_.chains[chain].state); }
  [[nodiscard]] std::uint64_t progress(std::size_t chain) const { return load(arrays_.chains[chain].progress); }
  [[nodiscard]] std::uint64_t opened_ns(std::size_t chain) const { return load(arrays_.chains[chain].opened_ns); }
  [[nodiscard]] std::uint64_t fired_ns(std::size_t chain) const { return load(arrays_.chains[chain].fired_ns); }
  [[nodiscard]] std::uint64_t until_ns(std::size_t chain) const { return load(arrays_.chains[chain].until_ns); }
  [[nodiscard]] std::uint64_t met_ns(std::size_t condition) const { return load(arrays_.conditions[condition].met_ns); }
  [[nodiscard]] std::uint64_t armed_ns(std::size_t chain) const { return load(arrays_.chains[chain].armed_ns); }
  // How many predecessors of an event have not happened yet.
  [[nodiscard]] std::uint32_t predecessors_left(std::size_t chain) const {
    return load(arrays_.chains[chain].after_left);
  }
  [[nodiscard]] std::uint64_t seen(std::size_t chain) const { return load(arrays_.chains[chain].seen); }
  [[nodiscard]] std::uint64_t injected(std::size_t chain) const { return load(arrays_.chains[chain].injected); }

  // True if the condition's chain still waits for conditions, and this condition is the current one or a later one.
  [[nodiscard]] bool pending(std::size_t condition) const;
  [[nodiscard]] bool is_current(std::size_t condition) const;
  // When the condition became the current one of its chain. 0: it has been current from the beginning. Nothing if the
  // time stamp is not written yet; its writer sends a notice afterwards.
  [[nodiscard]] std::optional<std::uint64_t> current_since(std::size_t condition) const;

  // Index + 1 of the node that a chain concerns. 0 if it concerns a role and is not bound to a node yet, because its
  // conditions are not met or no node has the role.
  [[nodiscard]] std::uint32_t node(std::size_t chain) const { return rose_chain_node(&arrays_.chains[chain]); }
  // The node's index. The chain must have a node, as every chain has that is armed or has fired.
  [[nodiscard]] std::size_t node_of(std::size_t chain) const;
  [[nodiscard]] std::uint32_t holder(std::size_t role) const { return load(arrays_.roles[role].holder); }
  // True if `where` (a node, a role, the node that a chain is bound to, or ROSE_ANY_NODE) currently refers to this
  // node.
  [[nodiscard]] bool is_there(std::uint32_t where, std::size_t node) const;

  // Counts one match of a condition if it is the chain's current condition. `node`: where the match happened;
  // ROSE_ANY_NODE: on no particular node. Returns true if it was the last match of the last condition.
  bool count(std::size_t condition, std::uint32_t pid, std::uint32_t tid, std::uint64_t now,
             std::uint32_t node = ROSE_ANY_NODE);
  // For a chain whose conditions are met: arms the chain if it waits for a call, otherwise fires it. Returns false if
  // that is not possible. If no node has the chain's role yet, call it again when a node takes the role.
  bool settle(std::size_t chain, std::uint32_t pid, std::uint32_t tid, std::uint64_t now);
  // Fires a chain and opens the chains that come `after` it. Returns false if it has already fired, another chain of
  // its group has fired, or no node has its role.
  bool fire(std::size_t chain, std::uint32_t pid, std::uint32_t tid, std::uint64_t now);
  // Records that the workload has begun.
  void begin(std::uint64_t now);
  // Ends a lasting fault now (ROSE_LASTS). Has no effect if the fault has already ended.
  void end(std::size_t chain, std::uint64_t now);

  std::uint64_t add_seen(std::size_t chain) { return __sync_add_and_fetch(&arrays_.chains[chain].seen, 1); }
  std::uint64_t add_injected(std::size_t chain, std::uint64_t n = 1) {
    return __sync_add_and_fetch(&arrays_.chains[chain].injected, n);
  }
  // True if another chain of the chain's group has fired.
  [[nodiscard]] bool lost(std::size_t chain) const;

 private:
  bool bind(rose_chain& chain) const;
  template <typename T>
  static T load(const T& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  }

  SharedArrays arrays_;
  std::size_t chains_ = 0;
  std::function<void()> ring_;
};

}  // namespace rose::inject
