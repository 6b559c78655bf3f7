// Faults that leave a node too little of a resource, by the kernel's own means: RLIMIT_NOFILE, the controllers memory
// and cpu, a file system that is full, a disk that is slow (inject/slow_disks.h). Set and verified, widened again;
// when, the injector says.
#pragma once

#include <cstdint>
#include <memory>
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

// Can this be done to this node, on this machine?
[[nodiscard]] Result<void> check_limit(const schedule::Fault& fault, const config::Node& node);

class Limits {
 public:
  Limits(const Plan& plan, Programs& programs);
  ~Limits();
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  // Ahead of the nodes' start: their cgroups and file systems, without limits yet.
  [[nodiscard]] Result<void> prepare(deploy::Deployment& deployment);
  // A new main process of a node, which may have a limit already.
  [[nodiscard]] Result<void> join(std::size_t node, pid_t pid);
  // The fault is in force on the node; an error: it is not.
  [[nodiscard]] Result<void> begin(std::size_t fault, std::size_t node);
  [[nodiscard]] Result<void> end(std::size_t fault);
  // To be looked after: v1 does not take memory back that is used already, so the limit stands where the node is, and
  // goes down with it; a limit of descriptors may have been raised by who has it.
  [[nodiscard]] bool unsettled(std::size_t fault) const;
  void settle(std::size_t fault);
  // All are over, and what was made goes, but for file systems: those are the deployment's. Safe to call twice.
  void finish();

  // For people, and how many processes it hit, or how often it was felt.
  [[nodiscard]] std::pair<std::string, std::uint64_t> told(std::size_t fault) const;
  // Why it changed nothing; "": it had an effect, or nobody can know.
  [[nodiscard]] std::string no_effect(std::size_t fault) const;

 private:
  struct Node;
  struct InForce;
  Result<void> set(Node& node, schedule::FaultKind kind, bool again = false);
  Result<void> set_controller(Node& node, schedule::FaultKind kind);
  Result<void> set_volume(Node& node, const std::string& folder);
  Result<bool> tighten(Node& node);
  void look(std::size_t fault);
  [[nodiscard]] std::uint64_t met(std::size_t fault) const;

  const Plan& plan_;
  Programs& programs_;
  deploy::Deployment* deployment_ = nullptr;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<InForce>> faults_;  // by fault: null for other kinds
  SlowDisks slow_;
};

}  // namespace rose::inject
