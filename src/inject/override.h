// The override backend's half in userspace: compiles a plan's calls into what bpf/inject/calls.h matches, finds and
// probes the syscalls' entries, and fetches memory that the kernel program could not read.
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
  std::map<std::uint32_t, rose_site> lists;  // by node << 16 | syscall: a part of `items`
  std::vector<int> numbers;                  // the syscalls, of all nodes
};
[[nodiscard]] CallTables compile_calls(const Plan& plan);

// "__x64_sys_newfstat"; nothing when this kernel has no such function.
[[nodiscard]] std::optional<std::string> entry_of(int syscall);

[[nodiscard]] rose_call_arguments arguments_of(int syscall);

// "write(/data/log)"; "" when the fault did not fire at a call.
[[nodiscard]] std::string describe(const rose_firing& firing);

// Has the kernel fetch what stands at `address` in a thread's memory: a string, or what is shorter than one.
void page_in(pid_t tid, std::uint64_t address);

// Probes on the entries of syscalls, for as long as it lives.
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
