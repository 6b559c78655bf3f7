// Threads that are made to wait, by a block or because they would complete an event before its turn. They wait at a
// location in their program or in a call. Records which threads are held and since when; the injector decides when a
// block begins and ends.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "inject/holder.h"
#include "inject/plan.h"
#include "inject/state.h"

namespace rose::inject {

// The interval between checks whether a BPF program has sent a thread its signal.
inline constexpr std::uint64_t kSignalPollNs = 200'000;

class Waits {
 public:
  struct Host {
    std::function<void(std::size_t node, std::function<void()> task)> later;  // runs a task in the node's worker
    std::function<std::vector<pid_t>(std::size_t node)> processes;
    std::function<void(std::size_t chain)> release_calls;             // lets supervisors release held calls
    std::function<void(std::size_t chain, const Error& why)> failed;  // called if the thread cannot be held
  };
  Waits(const Plan& plan, State& state, Host host);
  // Starts the tracer if a thread may have to wait at a location. `chains`: in memory shared with BPF programs.
  [[nodiscard]] Result<void> start(const rose_chain* chains);

  // Starts tracing the processes of the chain's node, so that a thread that reaches the chain's location from now on
  // can be held without stopping its process.
  void watch(std::size_t chain);
  // Call it when a process of the node was started. Traces this process, too, if watch() was called for a chain of the
  // node that may still hold a thread.
  void watch_start(std::size_t node, pid_t pid);

  // Lets the node's worker hold the chain's thread at its location. Returns false if the BPF program has not sent the
  // thread its signal yet.
  [[nodiscard]] bool take(std::size_t chain);
  [[nodiscard]] Hold held(std::size_t chain) const { return holder_ ? holder_->held(chain) : Hold::none; }
  // Lets the chain's thread continue, wherever it waits.
  void release(std::size_t chain, std::uint64_t when);

  // Reports that a call is held because it would complete the event before the event's turn.
  void hold_for_turn(std::size_t chain);
  // Checks an event that may have to wait for its turn. Releases its thread when the turn has come, or when the thread
  // cannot be held or was held for the maximum time. Returns true if the event happened with this call. Lowers `next`
  // to the time of the next check.
  bool follow_turn(std::size_t chain, std::uint64_t& next);

  [[nodiscard]] bool began(std::size_t chain) const { return waits_[chain].since_ns != 0; }
  // How long the thread was held; 0 if it was not held, or still is.
  [[nodiscard]] std::int64_t lasted_ns(std::size_t chain) const;

  // Releases all threads that are held at a location, and stops tracing them.
  void end();

 private:
  struct Wait {
    std::atomic<bool> watched{false}, taken{false}, failed{false};
    std::atomic<std::uint64_t> since_ns{0}, ended_ns{0};
  };
  void hold(std::size_t chain);
  // A descriptor of the process; invalid if it is not, or no longer, a process of a node.
  [[nodiscard]] Fd open(pid_t pid) const;
  void watch_process(pid_t pid);

  const Plan& plan_;
  State& state_;
  const Host host_;
  std::vector<Wait> waits_;         // by chain
  std::unique_ptr<Holder> holder_;  // null: no thread waits at a location in its program
};

}  // namespace rose::inject
