// Loading and attaching kernel programs: what libbpf 1.1 cannot do yet (uprobe_multi links, TCX),
// its errors in rose's words, its log lines into rose's. Links are descriptors: they vanish with
// the process that holds them, nothing is pinned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

struct bpf_link;
struct bpf_object;
struct bpf_program;

namespace rose::kernel {

// Sends libbpf's messages to log::debug. Call before the first use of libbpf; repeated calls are free.
void route_libbpf_log();

// `err` (positive) of loading or attaching BPF objects as ErrorKind::environment: names the missing
// capability, or the missing kernel feature, and what to do about it.
[[nodiscard]] Unexpected bpf_failure(std::string_view what, int err);

// Whether a uprobe_multi link really attaches here (Linux 6.6); tried once and remembered.
// ROSE_MASK=uprobe_multi in the environment answers no, so that the fallback gets tested.
[[nodiscard]] bool has_uprobe_multi();

// What one entry of a watched function costs here, in seconds: 10 us on virtual machines, 1-3 on bare metal.
// Measured once, with a probe of our own.
[[nodiscard]] double uprobe_seconds();

// Before an object is loaded: makes `program` (SEC("uprobe")) attachable by attach_functions, whichever way that will
// go.
void prepare_uprobe(bpf_program* program);

// One function to attach to: offset in the file, and the number that bpf_get_attach_cookie gives.
struct ProbePoint {
  std::uint64_t offset = 0;
  std::uint64_t cookie = 0;
};

// Keeps uprobes attached for as long as it lives.
class FunctionLink {
 public:
  FunctionLink() = default;
  FunctionLink(FunctionLink&&) noexcept;
  FunctionLink& operator=(FunctionLink&&) noexcept;
  ~FunctionLink();
  void detach();
  [[nodiscard]] bool attached() const { return multi_ || !single_.empty(); }

 private:
  friend Result<FunctionLink> attach_functions(const bpf_program*, const std::filesystem::path&,
                                               const std::vector<ProbePoint>&);
  friend class LinkCloser;
  Fd multi_;
  std::vector<bpf_link*> single_;
};

// Detaches in the background: the breakpoints of a link are gone at once, but the kernel then waits for grace
// periods, 50 ms here, and those of many links pass side by side. Links of single functions are dearer, 0.1 s each and
// one after another: when many are left at the end, a process of their own closes them, and nobody waits.
class LinkCloser {
 public:
  LinkCloser() = default;
  ~LinkCloser() { wait(); }
  LinkCloser(const LinkCloser&) = delete;
  LinkCloser& operator=(const LinkCloser&) = delete;
  void close(FunctionLink link);
  void wait();

 private:
  void reap(std::size_t most);
  std::list<std::future<void>> closing_;
  std::vector<FunctionLink> single_;  // not yet begun: one is closed at a time
};

// Attaches a loaded, prepared uprobe program to places of one file (by inode: every process that maps it, now or
// later). One uprobe_multi link, or one perf event for each place where the kernel has none: there
// thousands of places are slow to let go of.
[[nodiscard]] Result<FunctionLink> attach_functions(const bpf_program* program, const std::filesystem::path& binary,
                                                    const std::vector<ProbePoint>& points);

// A cgroup_skb program on a v2 cgroup folder, as a link.
[[nodiscard]] Result<Fd> attach_cgroup(const bpf_program* program, const std::filesystem::path& cgroup);

enum class Way { in, out };
// A SEC("tc") program on one way of an interface as a TCX link (Linux 6.6). ROSE_MASK=tcx in the environment refuses
// it, so that what stands in for it gets tested.
[[nodiscard]] Result<Fd> attach_tcx(const bpf_program* program, int ifindex, Way way);
// Whether XDP programs have the helper that ours read packets with: since Linux 5.18.
[[nodiscard]] bool xdp_reads_packets();
// A SEC("xdp") program as a link, generic mode; an interface holds one only.
[[nodiscard]] Result<Fd> attach_xdp(const bpf_program* program, int ifindex);

// How many values a tracepoint hands to its programs, the first one included, which is its own; 0: there is no such
// tracepoint, or the kernel does not describe it.
[[nodiscard]] int tracepoint_arguments(const std::string& tracepoint);

// Runs of the object's loaded programs that the kernel left out because the same program was interrupted on that CPU.
// Where preemption is off in tracepoints and probes (all kernels so far) there are none.
[[nodiscard]] std::uint64_t missed_runs(const bpf_object* object);

}  // namespace rose::kernel
