// Crashes and pauses of nodes, carried out: by the node's worker, by the supervisor that holds the call ahead of which
// they come, or by who hears first that a process has ended. When, the injector says.
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

class Strikes {
 public:
  struct Host {
    std::function<void(std::size_t node, pid_t pid)> paused;  // a node was
    std::function<void(std::size_t chain)> release_calls;     // that supervisors hold
  };
  Strikes(const Plan& plan, State& state, Follows& follows, const Programs& programs, Stacks& stacks, Host host)
      : plan_(plan), state_(state), follows_(follows), programs_(programs), stacks_(stacks), host_(std::move(host)) {}

  // Ahead of the nodes' start.
  [[nodiscard]] Result<void> prepare(deploy::Deployment& deployment);

  // The node is killed from here once the fault has fired; else by the supervisor, before it answers the call.
  [[nodiscard]] bool kills(std::size_t chain) const;
  [[nodiscard]] bool may_pause(std::size_t node) const;
  [[nodiscard]] bool loses_power(std::size_t chain) const {
    return plan_.chains[chain].fault->lose != schedule::Loss::nothing;
  }

  // By the node's worker, or by who hears first that the process which the kernel killed on the spot has ended: the
  // rest of the node must be gone before it starts again, and the new start be spared.
  void crash_once(std::size_t chain);
  // A process of the node has ended: what is killed from here is, and loses its power, before it may start again.
  void on_end(std::size_t node);
  // In the node's worker.
  void pause(std::size_t chain);
  // In the node's worker, or when that has ended.
  void end_pause(std::size_t chain);

  // Ahead of a call of process `tgid`: see FaultActions.
  bool crash_now(std::size_t chain, pid_t tgid, int signal);
  bool pause_now(std::size_t chain, pid_t tgid);

  // Looks which of the signalled processes have ended: once, before the nodes are ended in any case.
  void look();
  // Of a crash: some process ended by it. Not every signal ends a process.
  [[nodiscard]] bool ended_some(std::size_t chain) const;

 private:
  [[nodiscard]] std::vector<pid_t> targets(std::size_t chain) const;
  [[nodiscard]] const std::string& name_of(std::size_t chain) const { return plan_.nodes[state_.node_of(chain)]; }
  [[nodiscard]] deploy::Scope scope_of(std::size_t chain) const;
  bool crash(std::size_t chain, int signal, pid_t caller = 0);
  void lose_power(std::size_t chain);
  void watch_end(std::size_t chain, pid_t pid, int signal);
  // `killed`: the signal that comes leaves nothing of them.
  void take_from_outside(std::size_t chain, const std::vector<pid_t>& pids, bool killed);
  // Who of the fault's own node met a condition of it last, whatever time had to pass after that.
  struct Met {
    pid_t pid = 0, tid = 0;
  };
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
  std::map<std::size_t, std::vector<Fd>> signalled_;  // by chain: processes that may live on
  std::set<std::size_t> ended_;                       // chains that ended some
};

}  // namespace rose::inject
