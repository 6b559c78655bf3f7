// What the commands beside the nodes exchange with them: bytes of TCP and UDP, counted by the kernel (exchange.bpf.c)
// by command. Whether a workload did any work is known from nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::observe {

// Behind the headers: handshakes and resets are nothing.
struct Exchanged {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  friend bool operator==(const Exchanged&, const Exchanged&) = default;
};

class Exchange {
 public:
  // `commands`: the v2 cgroup that holds one for each command. Counts from now on. ErrorKind::environment: this machine
  // cannot.
  [[nodiscard]] static Result<std::unique_ptr<Exchange>> start(const std::filesystem::path& commands,
                                                               const std::vector<std::string>& addresses);
  virtual ~Exchange() = default;

  // By what is in the cgroup of that id, or was.
  [[nodiscard]] virtual Exchanged of(std::uint64_t cgroup_id) const = 0;
};

}  // namespace rose::observe
