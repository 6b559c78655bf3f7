// Answers the seccomp notifications of one node: counts calls against syscall faults and `before`s, tells the
// kernel programs which calls count for conditions, and changes, delays, carries out or holds what the schedule says.
//
// One thread a listener (each start of the node brings one), all under one lock a node, so that "the nth call" is exact
// over its processes, threads and restarts. Listeners are answered until their processes are gone: a closed one
// would fail every selected call with ENOSYS.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "inject/call.h"
#include "inject/clock.h"
#include "inject/ledger.h"
#include "inject/plan.h"
#include "inject/programs.h"
#include "inject/state.h"

namespace rose::inject {

// What a supervisor has others do, at once, before the call is answered.
class FaultActions {
 public:
  virtual ~FaultActions() = default;
  // Signals the node as the crash says. True when the process `tgid` was among those signalled.
  virtual bool crash_now(std::size_t chain, pid_t tgid, int signal) = 0;
  // Stops the node as the pause says, without waiting until it stands. True when `tgid` is among those stopped: its
  // call is held until Supervisor::release.
  virtual bool pause_now(std::size_t chain, pid_t tgid) = 0;
  // The call's thread waits in it from now on, until Supervisor::release.
  virtual void block_now(std::size_t chain) = 0;
  // A call that would make this event come waits in it: it is not its turn. Until Supervisor::release.
  virtual void turn_waits(std::size_t chain) = 0;
  // A fault is about to be done to this call, in which its thread is held.
  virtual void hit(std::size_t chain, NotifiedCall& call) = 0;
  // Where a fault fired, in words.
  virtual void fired_at(std::size_t chain, const std::string& call) = 0;
  // The fault changed something for the caller: it was answered, had its call done in part, or waits. From any thread.
  virtual void had_effect(std::size_t chain) = 0;
  // A call will end otherwise than the kernel would have ended it. May be called from several threads.
  virtual void changed(std::size_t chain, pid_t tid, int syscall, std::uint64_t at_ns) = 0;
};

class Supervisor {
 public:
  // `programs` may be null when no returns are watched, `clocks` when none of the node's are changed.
  Supervisor(const Plan& plan, State& state, Programs* programs, std::size_t node, FaultActions& actions,
             NodeClocks* clocks);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // `ledger`: who answers when rose is gone must know what waits; null: nobody will.
  void add_listener(pid_t pid, Fd listener, std::shared_ptr<Ledger> ledger = nullptr);
  // Lets calls go that were held for this pause, block or event, now and from now on.
  void release(std::size_t chain);
  // From now on everything goes on untouched, also what is delayed or held.
  void disarm();

 private:
  class Listener;
  struct Decision;
  friend class Listener;

  // The call, once made, would be the one that makes its event come, and the event's turn has not come.
  [[nodiscard]] bool comes_too_early(std::uint32_t condition, pid_t tid);
  // It has changed all the calls it was to change.
  [[nodiscard]] bool is_over(std::size_t chain) const;
  Decision decide(NotifiedCall& call, const std::function<bool()>& alive, bool& own_exec, pid_t main_pid,
                  std::uint64_t ip);

  const Plan& plan_;
  State& state_;
  Programs* programs_;
  FaultActions& actions_;
  NodeClocks* clocks_;
  const std::size_t node_;
  std::vector<std::uint32_t> conditions_;  // syscall conditions on this node
  std::vector<std::uint32_t> chains_;      // faults that wait for calls of this node
  std::atomic<bool> disarmed_{false};
  std::mutex counting_;
  // Under it, of events: calls that were begun while their condition was the current one, and who waits no longer.
  std::map<std::uint32_t, std::uint64_t> begun_;
  std::set<std::size_t> let_go_;
  std::mutex listeners_mutex_;
  std::list<std::unique_ptr<Listener>> listeners_;
};

}  // namespace rose::inject
