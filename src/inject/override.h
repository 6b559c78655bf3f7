// The user-space part of the override backend. It compiles a plan's calls for bpf/inject/calls.h, attaches probes to
// the entries of system calls, and makes the kernel load pages that the BPF program could not read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "inject/plan.h"
#include "inject/shared.h"

struct bpf_link;
struct bpf_program;

namespace rose::inject {

struct CallTables {
  std::vector<rose_glob> globs;
  std::vector<rose_wanted_call> calls;
  std::vector<std::uint32_t> items;          // indices of `calls`
  std::map<std::uint32_t, rose_site> lists;  // by node << 16 | syscall: a range of `items`
  std::vector<int> numbers;                  // the system calls of all nodes
};
[[nodiscard]] CallTables compile_calls(const Plan& plan);

// The kernel's function for a system call: "__x64_sys_newfstat"; nothing if this kernel has no such function.
[[nodiscard]] std::optional<std::string> entry_of(int syscall);

[[nodiscard]] rose_call_arguments arguments_of(int syscall);

// The call at which a fault fired: "write(/data/log)"; "" if the fault did not fire at a call.
[[nodiscard]] std::string describe(const rose_firing& firing);

// Makes the kernel load the pages that contain the path or structure at `address`, which a BPF program could not read.
// Reads at least as many bytes as the largest structure has, then up to the first NUL, at most PATH_MAX bytes.
void page_in(pid_t tid, std::uint64_t address);

// Keeps probes attached to the entries of system calls.
class EntryProbes {
 public:
  EntryProbes() = default;
  EntryProbes(const EntryProbes&) = delete;
  EntryProbes& operator=(const EntryProbes&) = delete;
  ~EntryProbes() { detach(); }
  [[nodiscard]] Result<void> attach(const bpf_program* program, const std::vector<int>& syscalls);
  void detach();

 private:
  std::vector<bpf_link*> links_;
};

}  // namespace rose::inject
