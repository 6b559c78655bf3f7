// Answers the seccomp notifications of a node: counts calls for syscall faults and `before`, tells BPF programs which
// calls count for conditions, and changes, delays, carries out or holds calls as the schedule requires.
//
// One thread per listener (each start of the node creates one), all under one lock per node, so that "the nth call" is
// exact across processes, threads and restarts. Listeners are served until their processes have ended, because a closed
// listener makes every selected call fail with ENOSYS.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
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

// Actions that a supervisor requests before the call is answered.
class FaultActions {
 public:
  virtual ~FaultActions() = default;
  // Signals the node for the crash. Returns true if process `tgid` was among those signalled.
  virtual bool crash_now(std::size_t chain, pid_t tgid, int signal) = 0;
  // Stops the node for the pause, without waiting until it has stopped. Returns true if `tgid` is among those stopped:
  // its call is held until Supervisor::release.
  virtual bool pause_now(std::size_t chain, pid_t tgid) = 0;
  // The call's thread waits in it from now on, until Supervisor::release.
  virtual void block_now(std::size_t chain) = 0;
  // A call that would complete this event waits for its turn, until Supervisor::release.
  virtual void turn_waits(std::size_t chain) = 0;
  // A fault is about to take effect on this call, in which its thread is held.
  virtual void hit(std::size_t chain, NotifiedCall& call) = 0;
  // The call at which a fault fired.
  virtual void fired_at(std::size_t chain, const std::string& call) = 0;
  // The fault changed something for the caller: it was answered, had its call done in part, or waits. From any thread.
  virtual void had_effect(std::size_t chain) = 0;
  // The call was carried out completely, and the result that the fault requires is the one that it had anyway.
  virtual void had_same_result(std::size_t chain) = 0;
  // The fault was due at this call, which rose cannot make in the thread's place: it went on by itself.
  virtual void passed_over(std::size_t chain, const std::string& call) = 0;
  // Calls of the node cannot be answered any more.
  virtual void broke_down(const std::string& why) = 0;
  // A call will get another result than from the kernel. Thread-safe.
  virtual void changed(std::size_t chain, pid_t tid, int syscall, std::uint64_t at_ns) = 0;
};

class Supervisor {
 public:
  // `programs` may be null if no returns are watched, `clocks` if no clocks of the node are changed.
  Supervisor(const Plan& plan, State& state, Programs* programs, std::size_t node, FaultActions& actions,
             NodeClocks* clocks);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // `ledger`: for the process that answers after rose has ended; null: there is none.
  void add_listener(pid_t pid, Fd listener, std::shared_ptr<Ledger> ledger = nullptr);
  // Releases calls that are held for this pause, block or event, now and in future.
  void release(std::size_t chain);
  // From now on, all calls continue unchanged, including those that are delayed or held. Returns when no call is being
  // processed any more, so that the counts in the outcomes are final.
  void disarm();

 private:
  class Listener;
  class Work;
  struct Decision;
  friend class Listener;

  // True if the call would complete its event before the event's turn.
  [[nodiscard]] bool is_too_early(std::uint32_t condition, pid_t tid);
  // True if the fault has changed all the calls that it was meant to change.
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
  // Counts threads that decide about a call or carry out a fault. Under this mutex, none begins once disarmed_ is set.
  std::mutex work_mutex_;
  std::condition_variable work_done_;
  int working_ = 0;
  std::mutex counting_;
  // Protected by it, for events: calls that began while their condition was current, and events that are no longer
  // waited for.
  std::map<std::uint32_t, std::uint64_t> begun_;
  std::set<std::size_t> released_events_;
  std::mutex listeners_mutex_;
  std::list<std::unique_ptr<Listener>> listeners_;
};

}  // namespace rose::inject
