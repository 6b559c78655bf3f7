// The cgroups to trace, identified by path. If a cgroup is removed and created again with another id, the BPF programs
// trace it from its first process and report it, so that the network programs can be attached again.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "bpf/tracer.h"
#include "observe/targets.h"

namespace rose::observe {

class TracedCgroups {
 public:
  Result<void> add(const std::filesystem::path& folder, std::uint32_t node);

  [[nodiscard]] bool empty() const { return cgroups_.empty(); }
  [[nodiscard]] std::size_t size() const { return cgroups_.size(); }
  // The depths of these cgroups, deepest first.
  [[nodiscard]] std::vector<std::uint32_t> levels() const;
  [[nodiscard]] const std::vector<NodeCgroup>& cgroups() const { return cgroups_; }

  // Passes the cgroups to trace to the BPF programs. Call it once the programs that observe the creation and removal of
  // cgroups are attached.
  Result<void> fill(int cgroups, int freezable, int places);

  // Takes note of a record from the kernel. Callable from any thread that reads the ring.
  void note(const rose_cgroup& record);
  // Call it when records were lost, because all cgroups must be checked then.
  void note_missed() { changed_ = true; }
  // True if a change was noted since the last call.
  [[nodiscard]] bool changed() { return changed_.exchange(false); }

 private:
  std::vector<NodeCgroup> cgroups_;
  std::atomic<bool> changed_ = false;
};

}  // namespace rose::observe
