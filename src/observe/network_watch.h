// Detects network delays. Manages the BPF programs in bpf/tracer/network.h and decides where they are attached.
// Silences that have ended arrive through the tracer's ring, except those of sampled TCP connections, which sample()
// returns. Silences that have not ended are listed on request.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "observe/decode.h"
#include "observe/targets.h"
#include "observe/tcp_silences.h"
#include "observe/traced_cgroups.h"
#include "observe/tracer.h"
#include "trace/event.h"

struct bpf_link;
struct bpf_map;
struct bpf_program;
struct rose_network_counts;
struct rose_network_settings;

namespace rose::observe {

class NetworkWatch {
 public:
  // The BPF programs, maps and settings. The tracer's skeleton owns them.
  struct Kernel {
    bpf_program *ingress, *tc, *xdp, *closed, *resent, *socket, *socket_scan;
    bpf_map *pairs, *fresh, *connections, *over, *addresses, *attached, *handshakes, *found;
    rose_network_settings* settings;
    bpf_program* tcp;
    bpf_map* closing;
  };
  NetworkWatch() = default;
  ~NetworkWatch();

  // Call it before loading. Selects the programs, the sizes of their maps and their settings. `places`: the cgroups
  // that are targets; `surrounding`: the cgroups that contain targets which are processes.
  void prepare(const Kernel& kernel, const TracerOptions& options, const std::vector<Target>& targets,
               const TracedCgroups& places, const std::vector<NodeCgroup>& surrounding);
  // Call it after loading, because equal programs may have replaced those that were prepared.
  void use(const Kernel& kernel) { kernel_ = kernel; }
  [[nodiscard]] std::uint64_t kernel_bytes() const;
  // `counts`: the counters of the loaded programs. The BPF programs must already know the nodes' processes, because
  // this function searches for their sockets.
  [[nodiscard]] Result<void> attach(const rose_network_counts* counts);
  void detach();
  // Call it when cgroups were created or removed. Attaches to those that exist now.
  void follow();
  // Call it periodically. Searches for sockets that were not found at first.
  void tick();

  // True if it is time to call sample().
  [[nodiscard]] bool is_due(std::int64_t now_ns) const { return by_iterator_ && now_ns >= due_ns_; }
  // Reads the state of the nodes' TCP connections. Returns the silences that have ended, with monotonic times.
  [[nodiscard]] std::vector<Decoded> sample();

  // Appends the silences that have not ended, and sets the number of evicted pairs in the header. `offset` is wall
  // clock minus monotonic clock; `nodes` contains the names of nodes in the trace.
  void add_open(trace::Trace& trace, std::int64_t offset, const std::vector<trace::StringId>& nodes) const;
  // The recorded handshakes, as lines for the header.
  [[nodiscard]] std::vector<std::string> handshakes(std::int64_t offset) const;

 private:
  Result<void> attach_interfaces();
  Result<void> attach_cgroups();
  void find_sockets() const;
  [[nodiscard]] std::vector<rose_closing> closing() const;
  [[nodiscard]] bool describe(const TcpSilences::Silence& silence, Decoded& out) const;

  // A cgroup whose packets are counted, and how the node of a packet is determined. It is identified by its path,
  // because it may be created later, or removed and created again.
  struct CountedCgroup {
    Cgroup cgroup;            // with the id of the cgroup to which programs are attached
    std::uint64_t value = 0;  // the cgroup's value in the map rose_attached: how the node of a packet is determined
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
  std::mutex mutex_;  // protects counted_ once attaching has begun, between the starting thread and the reader
  std::vector<CountedCgroup> counted_;
  bool by_socket_ = false;
  bool by_iterator_ = false;
  bpf_link* connections_link_ = nullptr;
  std::atomic<std::int64_t> due_ns_ = 0;
  mutable std::mutex sample_mutex_;  // protects silences_
  TcpSilences silences_;
  bool by_xdp_ = false;
  std::atomic<std::int64_t> attached_ns_ = 0;
  std::size_t scans_ = 0;
  std::int64_t delay_ns_ = 0;
  std::uint32_t pairs_ = 0;
  std::uint32_t found_ = 0;  // sockets that existed before tracing began
  std::vector<Fd> links_;
};

}  // namespace rose::observe
