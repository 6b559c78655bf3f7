// Crashes with power loss. Creates the disk that each of them needs, and discards data that was not synced. The
// injector decides when they happen.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "inject/plan.h"

namespace rose::inject {

// Checks that the fault is possible for this node on this machine, given the rest of the schedule.
[[nodiscard]] Result<void> check_power(const schedule::Schedule& schedule, const schedule::Fault& fault,
                                       const config::Node& node);

class PowerLosses {
 public:
  // Call before the nodes start.
  [[nodiscard]] Result<void> prepare(const Plan& plan, deploy::Deployment& deployment);
  // Call it after the crash has been carried out. Waits until the node's processes have ended. Returns a description of
  // what was lost.
  [[nodiscard]] Result<std::string> lose(const Plan& plan, std::size_t fault, std::size_t node) const;

 private:
  deploy::Deployment* deployment_ = nullptr;
};

}  // namespace rose::inject
