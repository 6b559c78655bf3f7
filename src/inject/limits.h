// Faults that limit a node's resources by mechanisms of the kernel: RLIMIT_NOFILE, the controllers memory and cpu, a
// full file system, a slow disk (inject/slow_disks.h). Sets, verifies and removes limits; the injector decides when.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "inject/plan.h"
#include "inject/programs.h"
#include "inject/slow_disks.h"

namespace rose::inject {

// Checks that the fault is possible for this node on this machine.
[[nodiscard]] Result<void> check_limit(const schedule::Fault& fault, const config::Node& node);

class Limits {
 public:
  Limits(const Plan& plan, Programs& programs);
  ~Limits();
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  // Call it before the nodes start. Creates their cgroups and file systems, without limits.
  [[nodiscard]] Result<void> prepare(deploy::Deployment& deployment);
  // Call it for each new main process of a node. With cgroup v1, adds the process to the node's cgroups. Applies the
  // descriptor limit that is in effect.
  [[nodiscard]] Result<void> join(std::size_t node, pid_t pid);
  // Puts the fault into effect on the node. On error it is not in effect.
  [[nodiscard]] Result<void> begin(std::size_t fault, std::size_t node);
  [[nodiscard]] Result<void> end(std::size_t fault);
  // True if the limit must be adjusted repeatedly, for one of two reasons. cgroup v1 refuses a limit below the memory
  // in use, so the limit is lowered along with the usage. And processes may raise their own descriptor limit. settle()
  // adjusts the limit once.
  [[nodiscard]] bool unsettled(std::size_t fault) const;
  void settle(std::size_t fault);
  // Removes all limits and what was created for them, except file systems, which belong to the deployment. May be
  // called twice.
  void finish();

  // How many processes of the node the kernel has killed for lack of memory since the run began; 0 if no fault of the
  // schedule limits its memory. Never waits. Call it only between prepare() and finish().
  [[nodiscard]] std::uint64_t killed(std::size_t node) const;
  // A description of the fault's effect, and a number that depends on the kind of fault: affected processes, full file
  // systems, delayed requests, or how often the limit took effect.
  [[nodiscard]] std::pair<std::string, std::uint64_t> effect(std::size_t fault) const;
  // Why the fault changed nothing; "" if it had an effect, or if that cannot be determined.
  [[nodiscard]] std::string no_effect(std::size_t fault) const;

 private:
  struct Node;
  struct InForce;
  Result<void> set(Node& node, schedule::FaultKind kind, bool again = false);
  Result<void> set_controller(Node& node, schedule::FaultKind kind);
  void add_others(std::size_t fault, std::vector<const deploy::Volume*>& volumes);
  Result<void> fill(std::size_t fault, const Node& node);
  Result<void> make_room(std::size_t fault, const Node& node);
  Result<bool> tighten(Node& node);
  void note_limiting(const Node& node, schedule::FaultKind kind);
  void look(std::size_t fault);
  [[nodiscard]] std::uint64_t met(std::size_t fault) const;
  [[nodiscard]] std::uint64_t felt(const schedule::Fault& fault, const InForce& limit) const;

  const Plan& plan_;
  Programs& programs_;
  deploy::Deployment* deployment_ = nullptr;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<InForce>> faults_;  // by fault; null for faults of other kinds
  struct Full {
    std::uint64_t bytes = 0;   // the volume's size while no fault is in effect
    std::set<std::size_t> by;  // the faults that are in effect on it
  };
  std::mutex full_mutex_;
  std::map<const deploy::Volume*, Full> full_;  // several nodes may share a volume
  // By fault, while it is in effect: file systems that are mounted inside its volumes. Each is listed for one fault
  // only, the first that affects it.
  std::map<std::size_t, std::vector<std::unique_ptr<deploy::Volume>>> others_;
  SlowDisks slow_;
};

}  // namespace rose::inject
