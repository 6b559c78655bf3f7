// Disks that are slow for a while: the disk that each node needs, and how fast it is. When, the injector says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "inject/plan.h"

namespace rose::inject {

// Can this be done to this node, on this machine, together with what else the schedule asks for?
[[nodiscard]] Result<void> check_slow(const schedule::Schedule& schedule, const schedule::Fault& fault,
                                      const config::Node& node);

class SlowDisks {
 public:
  explicit SlowDisks(const Plan& plan) : plan_(plan) {}
  // Ahead of the nodes' start, as fast as they can be, and of other disks of the same folders.
  [[nodiscard]] Result<void> prepare(deploy::Deployment& deployment);
  void begin(std::size_t fault, std::size_t node);
  void end(std::size_t fault);
  // For people, and how many requests had to wait.
  [[nodiscard]] std::pair<std::string, std::uint64_t> told(std::size_t fault) const;

 private:
  struct Slow {
    std::size_t node = 0;
    bool on = false;
    deploy::PacedFile::Told before, after;  // what the disk had told when it began, and when it ended
  };
  [[nodiscard]] deploy::PacedFile& disk(std::size_t fault) const;
  void set(deploy::PacedFile& disk);

  const Plan& plan_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::size_t, std::string>, deploy::PacedFile*> disks_;  // by node and folder
  std::map<std::size_t, Slow> slow_;                                         // by fault: those that have begun
};

}  // namespace rose::inject
