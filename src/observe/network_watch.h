// Connections that fall silent: where packets are counted, and the silences that still go on. What the kernel programs
// of bpf/tracer/network.h do, seen from outside; silences that ended come through the tracer's ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "observe/targets.h"
#include "observe/traced_cgroups.h"
#include "observe/tracer.h"
#include "trace/event.h"

struct bpf_map;
struct bpf_program;
struct rose_network_counts;
struct rose_network_settings;

namespace rose::observe {

class NetworkWatch {
 public:
  // Owned by the tracer's skeleton.
  struct Kernel {
    bpf_program *ingress, *tc, *xdp, *closed, *resent, *socket, *socket_scan;
    bpf_map *pairs, *fresh, *connections, *over, *addresses, *attached, *handshakes;
    rose_network_settings* settings;
  };

  // Before the programs are loaded: which of them, with how large maps and which settings. `places` are targets,
  // `surrounding` the cgroups that targets which are processes live in.
  void prepare(const Kernel& kernel, const TracerOptions& options, const std::vector<Target>& targets,
               const TracedCgroups& places, const std::vector<NodeCgroup>& surrounding);
  [[nodiscard]] std::uint64_t kernel_bytes() const;
  // `counts`: where the loaded programs count. Processes of the nodes must be known to the kernel half by now: their
  // sockets are looked for.
  [[nodiscard]] Result<void> attach(const rose_network_counts* counts);
  void detach();
  // Cgroups were made or removed: watches the packets of those that are there now.
  void follow();
  // Now and then: looks for sockets that were not found at first.
  void tick();

  // Appends the silences that go on, and says in the header what was forgotten; `offset` is wall time less monotonic
  // time, `nodes` the trace's names of nodes.
  void add_open(trace::Trace& trace, std::int64_t offset, const std::vector<trace::StringId>& nodes) const;
  // The handshakes that were seen, as lines for the header.
  [[nodiscard]] std::vector<std::string> handshakes(std::int64_t offset) const;

 private:
  Result<void> attach_interfaces();
  Result<void> attach_cgroups();
  void find_sockets() const;

  // A cgroup that packets are counted in, and how they are told apart. Which it is, and how, is told by paths alone:
  // it may come later, go, and come back.
  struct CountedCgroup {
    Cgroup cgroup;            // its id: that of the one that is attached to
    std::uint64_t value = 0;  // of rose_attached
    Fd socket, packets;
    bool warned = false;
  };
  void plan(const NodeCgroup& one, bool processes);
  [[nodiscard]] Result<void> attach_sockets(CountedCgroup& counted);
  [[nodiscard]] Result<void> attach_packets(CountedCgroup& counted);

  Kernel kernel_{};
  const rose_network_counts* counts_ = nullptr;
  std::vector<std::string> interfaces_;
  std::vector<std::vector<std::string>> addresses_;  // by node
  std::vector<bool> own_network_;                    // by node
  std::mutex mutex_;  // counted_, once they are being attached: by the one that starts, and the reader
  std::vector<CountedCgroup> counted_;
  bool by_socket_ = false;
  bool by_xdp_ = false;
  std::atomic<std::int64_t> attached_ns_ = 0;
  std::size_t scans_ = 0;
  std::int64_t delay_ns_ = 0;
  std::uint32_t pairs_ = 0;
  std::vector<Fd> links_;
};

}  // namespace rose::observe
