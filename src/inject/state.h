// The state of one armed schedule in memory that the kernel programs share, and userspace's hand in it. Every step is
// bpf/inject.h's, done with atomics: callable from any thread, no lock.
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

// Where the arrays stand: mapped BPF maps, or plain memory in tests.
struct SharedArrays {
  rose_chain* chains = nullptr;
  rose_condition* conditions = nullptr;
  rose_word* edges = nullptr;
  rose_word* groups = nullptr;  // by group number, 0 unused
  rose_settings* settings = nullptr;
  rose_role* roles = nullptr;
};

class State {
 public:
  // Copies the plan's chains, conditions and edges into the arrays.
  State(const Plan& plan, SharedArrays arrays);

  // Called after each transition made from userspace (it may be the kernel's turn to have something done).
  void on_change(std::function<void()> ring) { ring_ = std::move(ring); }

  [[nodiscard]] const rose_chain& chain(std::size_t i) const { return arrays_.chains[i]; }
  [[nodiscard]] const rose_condition& condition(std::size_t i) const { return arrays_.conditions[i]; }
  [[nodiscard]] rose_settings& settings() { return *arrays_.settings; }

  // Snapshots of single words that others write meanwhile.
  [[nodiscard]] std::uint32_t state(std::size_t chain) const { return load(arrays_.chains[chain].state); }
  [[nodiscard]] std::uint64_t progress(std::size_t chain) const { return load(arrays_.chains[chain].progress); }
  [[nodiscard]] std::uint64_t opened_ns(std::size_t chain) const { return load(arrays_.chains[chain].opened_ns); }
  [[nodiscard]] std::uint64_t fired_ns(std::size_t chain) const { return load(arrays_.chains[chain].fired_ns); }
  [[nodiscard]] std::uint64_t until_ns(std::size_t chain) const { return load(arrays_.chains[chain].until_ns); }
  [[nodiscard]] std::uint64_t met_ns(std::size_t condition) const { return load(arrays_.conditions[condition].met_ns); }
  [[nodiscard]] std::uint64_t armed_ns(std::size_t chain) const { return load(arrays_.chains[chain].armed_ns); }
  // How much of what must come before an event has not.
  [[nodiscard]] std::uint32_t turn_left(std::size_t chain) const { return load(arrays_.chains[chain].after_left); }
  [[nodiscard]] std::uint64_t seen(std::size_t chain) const { return load(arrays_.chains[chain].seen); }
  [[nodiscard]] std::uint64_t injected(std::size_t chain) const { return load(arrays_.chains[chain].injected); }

  // The condition's fault is not over, and the condition still ahead or current.
  [[nodiscard]] bool pending(std::size_t condition) const;
  [[nodiscard]] bool is_current(std::size_t condition) const;
  // When the condition became the current one; 0: it counts from the very beginning. Nothing while the stamp isn't
  // written yet: who writes it rings afterwards.
  [[nodiscard]] std::optional<std::uint64_t> current_since(std::size_t condition) const;

  // Index + 1 of the node a chain is about, 0 while that is a role nobody had when its conditions were met; of the node
  // that has a role now.
  [[nodiscard]] std::uint32_t node(std::size_t chain) const { return rose_chain_node(&arrays_.chains[chain]); }
  // Of a chain that has fired: it is known then.
  [[nodiscard]] std::size_t node_of(std::size_t chain) const;
  [[nodiscard]] std::uint32_t holder(std::size_t role) const { return load(arrays_.roles[role].holder); }
  // Does `where` (a node, a role, what a chain is bound to, ROSE_ANY_NODE) mean this node now?
  [[nodiscard]] bool is_there(std::uint32_t where, std::size_t node) const;

  // One match of a condition, if it is the current one, by this node (where one did). True when the chain's last was
  // met by it.
  bool count(std::size_t condition, std::uint32_t pid, std::uint32_t tid, std::uint64_t now,
             std::uint32_t node = ROSE_ANY_NODE);
  // Its conditions are met, and nobody had its role then: goes on if somebody has it now.
  bool settle(std::size_t chain, std::uint32_t pid, std::uint32_t tid, std::uint64_t now);
  // Fires a chain; false when it was fired already, its group has another winner, or nobody has its role. Opens what
  // comes `after`.
  bool fire(std::size_t chain, std::uint32_t pid, std::uint32_t tid, std::uint64_t now);
  // The workload began.
  void begin(std::uint64_t now);
  // Ends a partition now; what ended earlier stays so.
  void end(std::size_t chain, std::uint64_t now);

  std::uint64_t add_seen(std::size_t chain) { return __sync_add_and_fetch(&arrays_.chains[chain].seen, 1); }
  std::uint64_t add_injected(std::size_t chain, std::uint64_t n = 1) {
    return __sync_add_and_fetch(&arrays_.chains[chain].injected, n);
  }
  // Another of the chain's group has fired.
  [[nodiscard]] bool lost(std::size_t chain) const;

 private:
  template <typename T>
  static T load(const T& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  }

  SharedArrays arrays_;
  std::size_t chains_ = 0;
  std::function<void()> ring_;
};

}  // namespace rose::inject
