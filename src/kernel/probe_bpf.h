// Programs of a few instructions for the probes, made by hand so that probing needs no skeleton. Private to the
// probes.
#pragma once

#include <linux/bpf.h>
#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/fd.h"

namespace rose::kernel::probing {

// What one probe found.
struct Finding {
  bool ok = false;
  int error = 0;       // errno of the step that failed; 0 unknown
  std::string detail;  // the step and its outcome
};

[[nodiscard]] inline Finding yes(std::string detail) { return {true, 0, std::move(detail)}; }
[[nodiscard]] Finding no(std::string detail);
// "step: strerror(err)".
[[nodiscard]] Finding no_errno(const std::string& step, int err);

// One u64 in a map that a program counts up and we read.
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
                                  pid_t pid);  // only what that process does, as the kernel's programs see ids
[[nodiscard]] Code send_kill();                // bpf_send_signal(SIGKILL)
[[nodiscard]] Code output_to_ring(int ring_fd, std::uint64_t record);
// On entry of an x86-64 system call wrapper: when its first argument is `argument`, return -`err` instead.
[[nodiscard]] Code override_when(std::uint64_t argument, int err);

// The loaded program, or -errno inside `error`.
[[nodiscard]] Fd load(bpf_prog_type type, const Code& code, int& error, int expected_attach_type = 0);

// BPF_LINK_CREATE for attach types newer than libbpf 1.1; -1 and errno.
[[nodiscard]] Fd create_tcx_link(int program, int ifindex);
[[nodiscard]] Fd create_uprobe_multi_link(int program, const char* path, std::uint64_t offset);

// A perf event of /sys/bus/event_source/devices/`pmu` with the program attached. uprobe: path and offset;
// kprobe: function name and 0. pid -1: every process.
[[nodiscard]] Finding attach_perf(const char* pmu, const char* target, std::uint64_t offset, int pid, int program,
                                  Fd& event);

}  // namespace rose::kernel::probing
