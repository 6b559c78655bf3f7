// The cgroups to trace, followed by path: the kernel half takes one that comes back under another id from its first
// process on, and tells, so that the packet programs can follow.
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
  // Depths, deepest first, each once.
  [[nodiscard]] std::vector<std::uint32_t> levels() const;
  [[nodiscard]] const std::vector<NodeCgroup>& cgroups() const { return cgroups_; }

  // Tells the kernel half what to follow. Once the programs that watch cgroups being made and removed are attached.
  Result<void> fill(int cgroups, int freezable, int places);

  // A record of the kernel's; only remembered, for any thread that reads the ring.
  void note(const rose_cgroup& record);
  // Some could not be recorded: whoever follows looks at all of them.
  void note_missed() { changed_ = true; }
  // Was any noted since this was asked last?
  [[nodiscard]] bool changed() { return changed_.exchange(false); }

 private:
  std::vector<NodeCgroup> cgroups_;
  std::atomic<bool> changed_ = false;
};

}  // namespace rose::observe
