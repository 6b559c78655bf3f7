// Declares the probes under the names used in the table of probe.cc. Private to the probes.
#pragma once

#include "kernel/probe_bpf.h"

namespace rose::kernel::probing {

inline constexpr int kPatienceMs = 1000;  // time limit for one answer of the kernel or of a child

// In probe_trace.cc:
[[nodiscard]] Finding probe_raw_tracepoint();
[[nodiscard]] Finding probe_process_ids();
[[nodiscard]] Finding probe_event_clock();
[[nodiscard]] Finding probe_process_tracepoints();
[[nodiscard]] Finding probe_io_uring_tracepoints();
[[nodiscard]] Finding probe_ring_buffer();
[[nodiscard]] Finding probe_loop();
[[nodiscard]] Finding probe_uprobe();
[[nodiscard]] Finding probe_uprobe_multi();
[[nodiscard]] Finding probe_send_signal();
[[nodiscard]] Finding probe_hold_thread();
[[nodiscard]] Finding probe_kprobe();
[[nodiscard]] Finding probe_override_return();

// In probe_calls.cc:
[[nodiscard]] Finding probe_seccomp_notify();
[[nodiscard]] Finding probe_seccomp_wait_killable();
[[nodiscard]] Finding probe_seccomp_sync_wake_up();
[[nodiscard]] Finding probe_pidfd_getfd();

// In probe_cgroup.cc:
[[nodiscard]] Finding probe_cgroup2();
[[nodiscard]] Finding probe_cgroup_kill();
[[nodiscard]] Finding probe_cgroup_freeze();
[[nodiscard]] Finding probe_clone_into_cgroup();
[[nodiscard]] Finding probe_memory_controller();
[[nodiscard]] Finding probe_cpu_controller();
[[nodiscard]] Finding probe_cgroup_skb();

// In probe_network.cc:
[[nodiscard]] Finding probe_netns();
[[nodiscard]] Finding probe_veth();
[[nodiscard]] Finding probe_bridge();
[[nodiscard]] Finding probe_tcx();
[[nodiscard]] Finding probe_clsact();
[[nodiscard]] Finding probe_xdp();

// Sends a datagram to this process over loopback.
bool send_to_self();

}  // namespace rose::kernel::probing
