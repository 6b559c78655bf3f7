// Threads that wait for what a partition holds back: in a call on a connection whose other end is across the cut. From
// /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/address.h"
#include "deploy/deployment.h"
#include "inject/plan.h"
#include "inject/stacks.h"

namespace rose::inject {

// A node across the cut.
struct Across {
  std::string node;
  Address address;
};

struct CutWait {
  pid_t pid = 0, tid = 0;
  std::string words;  // "waits in recvfrom for n2 (10.0.0.2:7000), which is cut off"
};

// Of these processes, at most `most`. `protocol`: of the cut; 0: all. Threads that poll many sockets wait for none in
// particular.
[[nodiscard]] std::vector<CutWait> cut_waits(const std::vector<pid_t>& processes, const std::vector<Across>& across,
                                             std::uint8_t protocol, std::size_t most);

// Who waits is known only a while after a partition began: looks at it a few times, and has the stacks of those threads
// taken.
class CutWaits {
 public:
  // When to look at this chain next, which fired at `fired`; the greatest number: no more. By the injector's thread, as
  // looked().
  [[nodiscard]] std::uint64_t due(std::size_t chain, std::uint64_t fired) const;
  void looked(std::size_t chain) { ++looks_[chain]; }
  // By the worker of the fault's node.
  void take(const Plan& plan, std::size_t chain, std::size_t node, const deploy::Deployment& deployment,
            Stacks& stacks);

 private:
  std::map<std::size_t, std::size_t> looks_;
  std::mutex mutex_;
  std::map<std::size_t, std::set<pid_t>> seen_;  // under mutex_
};

}  // namespace rose::inject
