// The state of one armed schedule in memory that the kernel programs share, and userspace's hand in it. Every step is
// bpf/inject.h's, done with atomics: callable from any thread, no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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
  [[nodiscard]] std::uint64_t met_ns(std::size_t condition) const {
    return load(arrays_.conditions[condition].met_ns);
  }
  [[nodiscard]] std::uint64_t seen(std::size_t chain) const { return load(arrays_.chains[chain].seen); }
  [[nodiscard]] std::uint64_t injected(std::size_t chain) const { return load(arrays_.chains[chain].injected); }

  // The condition's fault is not over, and the condition still ahead or current.
  [[nodiscard]] bool pending(std::size_t condition) const;

  // One match of a condition, if it is the current one. True when the chain's last was met by it.
  bool count(std::size_t condition, std::uint32_t pid, std::uint32_t tid, std::uint64_t now);
  // Fires a chain; false when it was fired already or its group has another winner. Opens what comes `after`.
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
