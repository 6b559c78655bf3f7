// Threads that wait: at a place in their program (a block), or because their event came before its turn. Who is held,
// since when, and who goes on; when a block begins and ends, the injector says.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "inject/holder.h"
#include "inject/plan.h"
#include "inject/state.h"

namespace rose::inject {

inline constexpr std::uint64_t kSignalPollNs = 200'000;  // a kernel program is about to send its signal

class Waits {
 public:
  struct Host {
    std::function<void(std::size_t node, std::function<void()> task)> later;  // by the node's worker
    std::function<std::vector<pid_t>(std::size_t node)> processes;
    std::function<void(std::size_t chain)> release_calls;             // that supervisors hold
    std::function<void(std::size_t chain, const Error& why)> failed;  // the thread cannot be held
  };
  Waits(const Plan& plan, State& state, Host host);
  // Starts the tracer, if any thread may have to wait at a place. `chains`: in memory that the kernel programs share.
  [[nodiscard]] Result<void> start(const rose_chain* chains);

  // Whoever of the chain's node comes to its place from now on is held alone.
  void watch(std::size_t chain);
  // Another start of a node, while somebody may still come there.
  void watch_start(std::size_t node, pid_t pid);

  // A block's thread at its place. False: the kernel program has not sent it its signal yet.
  [[nodiscard]] bool take(std::size_t chain);
  [[nodiscard]] Hold held(std::size_t chain) const { return holder_ ? holder_->held(chain) : Hold::none; }
  // The chain's thread goes on, wherever it waits.
  void release(std::size_t chain, std::uint64_t when);

  // An event's call came before its turn, and is held.
  void came_early(std::size_t chain);
  // Of an event that waits for its turn, or may have to: true when it has come. `next`: when to look again.
  bool follow_turn(std::size_t chain, std::uint64_t& next);

  [[nodiscard]] bool began(std::size_t chain) const { return waits_[chain].since_ns != 0; }
  // How long it was held; 0: it was not, or still is.
  [[nodiscard]] std::int64_t lasted_ns(std::size_t chain) const;

  // Nobody is held at a place, nor traced, any more.
  void end();

 private:
  struct Wait {
    std::atomic<bool> watched{false}, taken{false}, failed{false};
    std::atomic<std::uint64_t> since_ns{0}, ended_ns{0};
  };
  void hold(std::size_t chain);

  const Plan& plan_;
  State& state_;
  const Host host_;
  std::vector<Wait> waits_;         // by chain
  std::unique_ptr<Holder> holder_;  // null: no thread waits at a place in its program
};

}  // namespace rose::inject
