// The state of an armed schedule in memory shared with BPF programs, for user space. Every step is a function of
// bpf/inject.h that uses atomic operations, so it can be called from any thread without a lock.
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

  // Sets a function that is called after each transition made by user space, because something may have to be carried
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

  // True if the condition's fault is not over, and the condition is current or still ahead.
  [[nodiscard]] bool pending(std::size_t condition) const;
  [[nodiscard]] bool is_current(std::size_t condition) const;
  // When the condition became the current one; 0: it counts from the beginning. Nothing if the time stamp is not
  // written yet; its writer sends a notice afterwards.
  [[nodiscard]] std::optional<std::uint64_t> current_since(std::size_t condition) const;

  // Index + 1 of the node that a chain concerns; 0 if it concerns a role that no node had when the conditions were met.
  [[nodiscard]] std::uint32_t node(std::size_t chain) const { return rose_chain_node(&arrays_.chains[chain]); }
  // The node's index. Only for a chain that has fired, whose node is therefore known.
  [[nodiscard]] std::size_t node_of(std::size_t chain) const;
  [[nodiscard]] std::uint32_t holder(std::size_t role) const { return load(arrays_.roles[role].holder); }
  // True if `where` (a node, a role, the node that a chain is bound to, or ROSE_ANY_NODE) currently refers to this
  // node.
  [[nodiscard]] bool is_there(std::uint32_t where, std::size_t node) const;

  // Counts one match of a condition if it is the chain's current condition, on this node (if any). Returns true if it
  // was the last match of the last condition.
  bool count(std::size_t condition, std::uint32_t pid, std::uint32_t tid, std::uint64_t now,
             std::uint32_t node = ROSE_ANY_NODE);
  // For a chain whose conditions were met when no node had its role: fires or arms the chain if a node has the role
  // now.
  bool settle(std::size_t chain, std::uint32_t pid, std::uint32_t tid, std::uint64_t now);
  // Fires a chain and opens the chains that come `after` it. Returns false if it has already fired, another chain of
  // its group has fired, or no node has its role.
  bool fire(std::size_t chain, std::uint32_t pid, std::uint32_t tid, std::uint64_t now);
  // Records that the workload has begun.
  void begin(std::uint64_t now);
  // Ends a partition now. Has no effect if it has already ended.
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
