// Carries out crashes and pauses of nodes. This happens in the node's worker, in the supervisor that holds the
// triggering call, or in the thread that is first informed that a process has ended. The injector decides when.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "deploy/deployment.h"
#include "inject/follow.h"
#include "inject/plan.h"
#include "inject/power.h"
#include "inject/programs.h"
#include "inject/stacks.h"
#include "inject/state.h"

namespace rose::inject {

class ProcessStops {
 public:
  struct Host {
    std::function<void(std::size_t node, pid_t pid)> paused;  // called when a node was paused
    std::function<void(std::size_t chain)> release_calls;     // lets supervisors release held calls
  };
  ProcessStops(const Plan& plan, State& state, Follows& follows, const Programs& programs, Stacks& stacks, Host host)
      : plan_(plan), state_(state), follows_(follows), programs_(programs), stacks_(stacks), host_(std::move(host)) {}

  // Call before the nodes start.
  [[nodiscard]] Result<void> prepare(deploy::Deployment& deployment);

  // True if this class kills the node after the fault has fired. False if the supervisor does so before it answers the
  // call.
  [[nodiscard]] bool kills(std::size_t chain) const;
  [[nodiscard]] bool may_pause(std::size_t node) const;
  [[nodiscard]] bool loses_power(std::size_t chain) const {
    return plan_.chains[chain].fault->lose != schedule::Loss::nothing;
  }

  // Carries out the crash; only the first call for a chain has an effect. Called by the node's worker, or by the thread
  // that is first informed that the process killed by a BPF program has ended. The remaining processes must be killed
  // before the node is restarted; otherwise the restarted processes would be killed, too.
  void crash_once(std::size_t chain);
  // Called when the node's main process has ended. Completes pending kills and power losses before the node may be
  // restarted.
  void on_end(std::size_t node);
  // Call it in the node's worker.
  void pause(std::size_t chain);
  // Call it in the node's worker, or after the worker has ended.
  void end_pause(std::size_t chain);

  // Called before a call of process `tgid` continues: see FaultActions.
  bool crash_now(std::size_t chain, pid_t tgid, int signal);
  bool pause_now(std::size_t chain, pid_t tgid);

  // Checks which of the signalled processes have ended. Call it once, before the nodes are ended at the end of the run.
  void look();
  // True if the crash has ended at least one process. Not every signal ends a process.
  [[nodiscard]] bool ended_some(std::size_t chain) const;

 private:
  [[nodiscard]] std::vector<pid_t> targets(std::size_t chain) const;
  [[nodiscard]] const std::string& name_of(std::size_t chain) const { return plan_.nodes[state_.node_of(chain)]; }
  [[nodiscard]] deploy::Scope scope_of(std::size_t chain) const;
  bool crash(std::size_t chain, int signal, pid_t caller = 0);
  void lose_power(std::size_t chain);
  void watch_end(std::size_t chain, pid_t pid, int signal);
  // `killed`: the signal will end all of these processes, so they may be stopped to read their stacks.
  void take_from_outside(std::size_t chain, const std::vector<pid_t>& pids, bool killed);
  struct Met {
    pid_t pid = 0, tid = 0;
  };
  // The thread of the fault's own node that met the latest of the fault's conditions that such a thread has met. Zeros
  // if there is none.
  [[nodiscard]] Met last_met_by(std::size_t chain) const;
  void paused(std::size_t chain, std::size_t processes);

  const Plan& plan_;
  State& state_;
  Follows& follows_;
  const Programs& programs_;
  Stacks& stacks_;
  const Host host_;
  deploy::Deployment* deployment_ = nullptr;
  PowerLosses power_;
  std::mutex crashing_;
  mutable std::mutex watching_;
  std::map<std::size_t, std::vector<Fd>> signalled_;  // by chain: signalled processes that may have survived
  std::set<std::size_t> ended_;                       // chains whose signal has ended a process
};

}  // namespace rose::inject
