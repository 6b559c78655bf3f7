// Loads and attaches BPF programs: adds what libbpf 1.1 lacks (uprobe_multi links, TCX), and maps libbpf's errors and
// log lines to rose's. Links are descriptors, so they disappear with the process that holds them. Nothing is pinned.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

struct bpf_link;
struct bpf_object;
struct bpf_program;

namespace rose::kernel {

// Sends libbpf's messages to log::debug. Call it before the first use of libbpf; it may be called repeatedly.
void route_libbpf_log();

// Turns the (positive) `err` of loading or attaching a BPF object into ErrorKind::environment. The error names the
// missing capability or kernel feature and how to get it.
[[nodiscard]] Unexpected bpf_failure(std::string_view what, int err);

// True if a uprobe_multi link can be attached (Linux 6.6). This is tried once and then remembered.
// ROSE_MASK=uprobe_multi in the environment makes it return false, so that the fallback can be tested.
[[nodiscard]] bool has_uprobe_multi();

// The cost in seconds of one entry into a probed function: about 10 us on virtual machines, 1 to 3 us on bare metal.
// Measured once, with a probe on a function of rose itself.
[[nodiscard]] double uprobe_seconds();

// Prepares `program` (SEC("uprobe")) so that attach_functions can attach it by either method. Call it before the object
// is loaded.
void prepare_uprobe(bpf_program* program);

// A location to which a probe is attached: its offset in the file, and the number that bpf_get_attach_cookie returns in
// the program.
struct ProbePoint {
  std::uint64_t offset = 0;
  std::uint64_t cookie = 0;
};

// Keeps uprobes attached as long as it exists.
class FunctionLink {
 public:
  FunctionLink() = default;
  FunctionLink(FunctionLink&&) noexcept;
  FunctionLink& operator=(FunctionLink&&) noexcept;
  ~FunctionLink();
  void detach();
  [[nodiscard]] bool attached() const { return multi_ || !single_.empty(); }
  // Used by the functions below. Returns 0 or an errno; after an error, some of the points may be attached.
  [[nodiscard]] int attach(const bpf_program* program, const std::string& path, std::span<const ProbePoint> points);

 private:
  friend class LinkCloser;
  Fd multi_;
  std::vector<bpf_link*> single_;
};

// Detaches in the background. When a uprobe_multi link is closed, the kernel removes its breakpoints at once, but then
// waits for RCU grace periods (about 50 ms); the waits of several such links overlap. Perf events take 0.1 s for each
// location, so the links that consist of them are closed one after another. If many perf events are left at the end, a
// separate process closes them, so that rose does not have to wait.
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
  std::vector<FunctionLink> single_;  // links of perf events that are still open
};

// Attaches a loaded, prepared uprobe program to locations in one file. Uprobes are bound to the inode: every process
// that maps the file now or later is affected. Uses one uprobe_multi link, or one perf event per location if the kernel
// has no such links; detaching thousands of perf events is slow.
[[nodiscard]] Result<FunctionLink> attach_functions(const bpf_program* program, const std::filesystem::path& binary,
                                                    const std::vector<ProbePoint>& points);

struct PossibleLink {
  FunctionLink link;                 // not attached if all points were refused
  std::vector<std::size_t> refused;  // indices of the points, ascending
};
// Like attach_functions(), but leaves out the points at which the kernel refuses to place a probe. A probe needs a copy
// of the instruction that the kernel can execute in another place, which is impossible for some instructions (on
// x86-64, for example, with a lock prefix). The kernel checks an instruction only once a process has mapped the file,
// so a later call may refuse other points.
[[nodiscard]] Result<PossibleLink> attach_possible(const bpf_program* program, const std::filesystem::path& binary,
                                                   const std::vector<ProbePoint>& points);

// Attaches a cgroup_skb program to a cgroup v2 folder with a link.
[[nodiscard]] Result<Fd> attach_cgroup(const bpf_program* program, const std::filesystem::path& cgroup);

enum class Way { in, out };
// Attaches a SEC("tc") program to one direction of an interface with a TCX link (Linux 6.6). ROSE_MASK=tcx in the
// environment makes it fail, so that the fallback can be tested.
[[nodiscard]] Result<Fd> attach_tcx(const bpf_program* program, int ifindex, Way way);
// True if an iterator over open files can read the state of sockets (Linux 5.8). This is tried once and then
// remembered. ROSE_MASK=task_file in the environment makes it return false.
[[nodiscard]] bool iterates_files();
// True if XDP programs may call bpf_xdp_load_bytes (Linux 5.18), with which rose's programs read packets.
[[nodiscard]] bool xdp_reads_packets();
// Attaches a SEC("xdp") program with a link in generic mode. An interface can have only one such program.
[[nodiscard]] Result<Fd> attach_xdp(const bpf_program* program, int ifindex);

// True if argument `index` of the tracepoint's callback function is a pointer. Index 0 is `__data`, which the kernel
// passes in front of the arguments that BPF programs see.
[[nodiscard]] bool tracepoint_passes_pointer(const std::string& tracepoint, int index);

// The form of the tracepoint io_uring_complete on this kernel: a value of enum rose_uring_form (bpf/tracer.h).
[[nodiscard]] std::uint32_t uring_form();

// The number of arguments of the tracepoint's callback function, including `__data`. Returns 0 if there is no such
// tracepoint, or if the kernel does not describe it.
[[nodiscard]] int tracepoint_arguments(const std::string& tracepoint);

// The number of times that the kernel skipped a program because the same program had been interrupted on that CPU. All
// kernels so far disable preemption in tracepoints and probes, so that the number is 0.
[[nodiscard]] std::uint64_t missed_runs(const bpf_object* object);

}  // namespace rose::kernel
