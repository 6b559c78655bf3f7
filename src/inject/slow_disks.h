// Slow disks. Creates the disk that each fault needs, and changes its speed. The injector decides when faults begin and
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "deploy/deployment.h"
#include "inject/plan.h"

namespace rose::inject {

// Checks that the fault is possible for this node on this machine, given the rest of the schedule.
[[nodiscard]] Result<void> check_slow(const schedule::Schedule& schedule, const schedule::Fault& fault,
                                      const config::Node& node);

class SlowDisks {
 public:
  explicit SlowDisks(const Plan& plan) : plan_(plan) {}
  // Call it before the nodes start, and before other disks of the same folders are created. The disks start at full
  // speed.
  [[nodiscard]] Result<void> prepare(deploy::Deployment& deployment);
  void begin(std::size_t fault, std::size_t node);
  void end(std::size_t fault);
  // A description of the fault's effect, and the number of delayed requests.
  [[nodiscard]] std::pair<std::string, std::uint64_t> effect(std::size_t fault) const;
  // Returns elsewhere_words() for the node on which the fault began.
  [[nodiscard]] std::string elsewhere(std::size_t fault) const;

 private:
  struct Slow {
    std::size_t node = 0;
    bool on = false;
    std::vector<deploy::PacedFile*> disks;
    deploy::PacedFile::Counters before, after;  // sums over the disks when the fault began and ended
  };
  [[nodiscard]] static deploy::PacedFile::Counters counters(const Slow& slow);
  void set(deploy::PacedFile& disk);

  const Plan& plan_;
  deploy::Deployment* deployment_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::size_t, Slow> slow_;  // by fault, for faults that have begun
};

}  // namespace rose::inject
