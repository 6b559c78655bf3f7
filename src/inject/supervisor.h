// Answers the seccomp notifications of a node: counts calls for syscall faults and `before`, reports to BPF programs
// which calls count for conditions, and changes, delays, carries out or holds calls as the schedule requires.
//
// There is one thread per listener, and each start of the node creates a listener. All threads of a node use one lock,
// so that "the nth call" is exact across processes, threads and restarts. Listeners are served until their processes
// have ended, because a closed listener makes every selected call fail with ENOSYS.
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

// Actions that a supervisor requests before it answers a call.
class FaultActions {
 public:
  virtual ~FaultActions() = default;
  // Signals the node for the crash. Returns true if process `tgid` was among those signalled.
  virtual bool crash_now(std::size_t chain, pid_t tgid, int signal) = 0;
  // Stops the node for the pause. Returns true if process `tgid` is among those stopped; its call is then held until
  // Supervisor::release. If the pause affects the whole node, does not wait until all processes have stopped.
  virtual bool pause_now(std::size_t chain, pid_t tgid) = 0;
  // Reports that the call's thread waits in the call from now on, until Supervisor::release.
  virtual void block_now(std::size_t chain) = 0;
  // Reports that a call that would complete this event waits for the event's turn, until Supervisor::release.
  virtual void turn_waits(std::size_t chain) = 0;
  // Reports that a fault is about to take effect on this call. The thread is held in the call meanwhile.
  virtual void hit(std::size_t chain, NotifiedCall& call) = 0;
  // Reports the call at which a fault fired.
  virtual void fired_at(std::size_t chain, const std::string& call) = 0;
  // Reports that the fault changed something for the caller: the call was answered or made in part, or it waits. May be
  // called by any thread.
  virtual void had_effect(std::size_t chain) = 0;
  // Reports that a call was carried out completely and had the result that the fault requires, so the fault changed
  // nothing.
  virtual void had_same_result(std::size_t chain) = 0;
  // Reports that the fault was due at a call that rose cannot make in the thread's place, so that the call continued
  // without the fault.
  virtual void passed_over(std::size_t chain, const std::string& call) = 0;
  // Reports that calls of the node cannot be answered any more.
  virtual void broke_down(const std::string& why) = 0;
  // Reports that a call will get a result that differs from the kernel's. Thread-safe.
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

  // `ledger`: shared with the process that answers after rose has ended; null: there is no such process.
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

  // True if the call would complete its event before the event's turn. Counts the call in begun_.
  [[nodiscard]] bool is_too_early(std::uint32_t condition, pid_t tid);
  // True if the fault affects no further calls: it has fired, and a syscall fault has also changed all `times` calls.
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
  // Protects working_, the number of threads that decide about a call or carry out a fault. Once disarmed_ is set, no
  // thread begins to do so.
  std::mutex work_mutex_;
  std::condition_variable work_done_;
  int working_ = 0;
  std::mutex counting_;
  // For events, protected by counting_. begun_: by condition, the number of matching calls that began while the
  // condition was current. released_events_: chains of events whose calls are not held any more.
  std::map<std::uint32_t, std::uint64_t> begun_;
  std::set<std::size_t> released_events_;
  std::mutex listeners_mutex_;
  std::list<std::unique_ptr<Listener>> listeners_;
};

}  // namespace rose::inject
