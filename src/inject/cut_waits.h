// Finds threads that wait because of a partition, that is, threads in a call on a connection to a node on the other
// side. Uses /proc.
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

// A node on the other side of the partition.
struct Across {
  std::string node;
  Address address;
};

struct CutWait {
  pid_t pid = 0, tid = 0;
  std::string words;  // "waits in recvfrom for n2 (10.0.0.2:7000), which is partitioned off"
};

// Returns at most `most` waiting threads of these processes. `protocol`: the partition's protocol; 0: all. Threads that
// poll several sockets are left out, because they do not wait for a particular one.
[[nodiscard]] std::vector<CutWait> cut_waits(const std::vector<pid_t>& processes, const std::vector<Across>& across,
                                             std::uint8_t protocol, std::size_t most);

// Records the stacks of waiting threads. Many threads begin to wait only some time after the beginning of a partition,
// so they are searched for several times.
class CutWaits {
 public:
  // The time of the next search for threads that wait because of this chain, which fired at `fired`; the largest number
  // means never again. Call due() and looked() in the injector's thread.
  [[nodiscard]] std::uint64_t due(std::size_t chain, std::uint64_t fired) const;
  void looked(std::size_t chain) { ++looks_[chain]; }  // counts a search
  // Searches once, and records the stacks of threads that were not found before. Call it in the worker of the fault's
  // node.
  void take(const Plan& plan, std::size_t chain, std::size_t node, const deploy::Deployment& deployment,
            Stacks& stacks);

 private:
  std::map<std::size_t, std::size_t> looks_;
  std::mutex mutex_;
  std::map<std::size_t, std::set<pid_t>> seen_;  // protected by mutex_
};

}  // namespace rose::inject
