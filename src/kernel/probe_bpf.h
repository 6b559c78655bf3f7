// BPF programs of a few instructions, assembled by hand so that probing needs no skeleton. Private to the probes.
#pragma once

#include <linux/bpf.h>
#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/fd.h"

namespace rose::kernel::probing {

// The result of one probe.
struct Finding {
  bool ok = false;
  int error = 0;       // errno of the failed step; 0: unknown
  std::string detail;  // the step and its result
};

[[nodiscard]] inline Finding yes(std::string detail) { return {true, 0, std::move(detail)}; }
[[nodiscard]] Finding no(std::string detail);
// Formats "step: strerror(err)".
[[nodiscard]] Finding no_errno(const std::string& step, int err);

// A u64 in a map, which a program increments and the probe reads.
class Counter {
 public:
  Counter();
  [[nodiscard]] bool ok() const { return static_cast<bool>(map_); }
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] int fd() const { return map_.get(); }
  [[nodiscard]] std::uint64_t value() const;

 private:
  Fd map_;
  int error_ = 0;
};

using Code = std::vector<bpf_insn>;
[[nodiscard]] Code count_and_return(const Counter& counter, int result);
[[nodiscard]] Code count_calls_of(const Counter& counter,
                                  // Counts only events of this process. `pid` is the process id that BPF programs see.
                                  pid_t pid);
[[nodiscard]] Code clock_in_units(int shift);  // bpf_ktime_get_ns() >> shift
inline constexpr std::uint32_t kLoopStep = 8;
[[nodiscard]] Code loop_once();  // bpf_loop over a callback, which begins at kLoopStep
[[nodiscard]] Code send_kill();  // bpf_send_signal(SIGKILL)
[[nodiscard]] Code output_to_ring(int ring_fd, std::uint64_t record);
// A program for a kprobe on the kernel's function of a system call: makes the call return -`err` if the call's first
// argument is `argument`.
[[nodiscard]] Code override_when(std::uint64_t argument, int err);

// Loads a program and sets `error` to 0, or to the errno if the kernel refuses the program.
[[nodiscard]] Fd load(bpf_prog_type type, const Code& code, int& error, int expected_attach_type = 0);

// Calls BPF_LINK_CREATE for attach types that libbpf 1.1 does not know. Returns no descriptor and sets errno on
// failure.
[[nodiscard]] Fd create_tcx_link(int program, int ifindex);
[[nodiscard]] Fd create_uprobe_multi_link(int program, const char* path, std::uint64_t offset);

// Attaches the program to a perf event of /sys/bus/event_source/devices/`pmu`. For a uprobe, `target` is the path and
// `offset` the offset in the file. For a kprobe, `target` is the name of the function and `offset` is 0. A pid of -1
// means every process.
[[nodiscard]] Finding attach_perf(const char* pmu, const char* target, std::uint64_t offset, int pid, int program,
                                  Fd& event);

}  // namespace rose::kernel::probing
