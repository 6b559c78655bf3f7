// Crashes in which the node's power goes: the disk that each needs, and what it loses. When, the injector says.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "inject/plan.h"

namespace rose::inject {

// Can this be done to this node, on this machine, together with what else the schedule asks for?
[[nodiscard]] Result<void> check_power(const schedule::Schedule& schedule, const schedule::Fault& fault,
                                       const config::Node& node);

class PowerLosses {
 public:
  // Ahead of the nodes' start.
  [[nodiscard]] Result<void> prepare(const Plan& plan, deploy::Deployment& deployment);
  // Once the crash has been carried out: waits for the node's processes to be gone. What was lost, for people.
  [[nodiscard]] Result<std::string> lose(const Plan& plan, std::size_t fault, std::size_t node) const;

 private:
  deploy::Deployment* deployment_ = nullptr;
  std::map<std::pair<std::size_t, std::string>, const deploy::Disk*> disks_;  // by node and folder
};

}  // namespace rose::inject
