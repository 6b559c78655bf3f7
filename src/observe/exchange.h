// Counts the traffic between the nodes and the commands of a run (workload, oracle, incident): bytes of TCP and UDP,
// counted by the kernel (exchange.bpf.c) for each command. This is the only evidence that a workload did any work.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::observe {

// Bytes of payload only: handshakes and resets do not count.
struct Exchanged {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  friend bool operator==(const Exchanged&, const Exchanged&) = default;
};

class Exchange {
 public:
  // `commands`: the v2 cgroup that contains one cgroup per command. Counts from now on. Returns ErrorKind::environment
  // if this machine cannot count the traffic.
  [[nodiscard]] static Result<std::unique_ptr<Exchange>> start(const std::filesystem::path& commands,
                                                               const std::vector<std::string>& addresses);
  virtual ~Exchange() = default;

  // The traffic of processes in the cgroup with this id, which may have been removed.
  [[nodiscard]] virtual Exchanged of(std::uint64_t cgroup_id) const = 0;
};

}  // namespace rose::observe
