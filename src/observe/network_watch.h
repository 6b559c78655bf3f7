// Connections that fall silent: where packets are counted, and the silences that still go on. What the kernel programs
// of bpf/tracer/network.h do, seen from outside; silences that ended come through the tracer's ring.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "observe/places.h"
#include "observe/targets.h"
#include "observe/tracer.h"
#include "trace/event.h"

struct bpf_map;
struct bpf_program;
struct rose_network_settings;

namespace rose::observe {

class NetworkWatch {
 public:
  // Owned by the tracer's skeleton.
  struct Kernel {
    bpf_program *ingress, *tc, *xdp, *closed;
    bpf_map *pairs, *connections, *addresses, *attached;
    rose_network_settings* settings;
  };

  // Before the programs are loaded: which of them, with how large maps and which settings. `places` are targets (and
  // outlive this), `surrounding` the cgroups that targets which are processes live in.
  void prepare(const Kernel& kernel, const TracerOptions& options, const std::vector<Target>& targets,
               Places& places, const std::vector<NodeCgroup>& surrounding);
  [[nodiscard]] std::uint64_t kernel_bytes() const;
  [[nodiscard]] Result<void> attach();
  void detach() { links_.clear(); }

  // Appends the silences that go on; `offset` is wall time less monotonic time, `nodes` the trace's names of nodes.
  void add_open(trace::Trace& trace, std::int64_t offset, const std::vector<trace::StringId>& nodes) const;

 private:
  Result<void> attach_interfaces();
  Result<void> attach_cgroups();

  Kernel kernel_{};
  std::vector<std::string> interfaces_;
  std::vector<std::vector<std::string>> addresses_;  // by node
  Places* places_ = nullptr;
  std::vector<NodeCgroup> surrounding_;
  std::int64_t delay_ns_ = 0;
  std::uint32_t pairs_ = 0;
  std::vector<Fd> links_;
};

}  // namespace rose::observe
