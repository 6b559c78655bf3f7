// The cgroups to trace, followed by path: the kernel half takes one that comes back under another id from its first
// process on; here the packet program follows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "bpf/tracer.h"
#include "observe/targets.h"

struct bpf_program;

namespace rose::observe {

class Places {
 public:
  Result<void> add(const std::filesystem::path& folder, std::uint32_t node);

  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] std::size_t size() const { return places_.size(); }
  // Depths, deepest first, each once.
  [[nodiscard]] std::vector<std::uint32_t> levels() const;
  // Does the packet program belong to this cgroup already?
  [[nodiscard]] bool holds(std::uint64_t id) const;

  // Tells the kernel half what to follow. Once the programs that watch cgroups being made and removed are attached.
  Result<void> fill(int cgroups, int freezable, int places);
  // Attaches a packet program to all that are there, and from now on to those that come.
  Result<void> attach(const bpf_program* packets, int attached);

  // A record of the kernel's; only remembered, for any thread that reads the ring.
  void note(const rose_cgroup& record);
  // Carries out what was noted.
  void follow();
  void detach();

 private:
  struct Place {
    Cgroup cgroup;
    std::uint32_t node = 0;
    Fd link;
    bool warned = false;
  };
  Result<void> attach_one(Place& place);

  std::vector<Place> places_;
  const bpf_program* packets_ = nullptr;
  int attached_ = -1;
  mutable std::mutex mutex_;  // what stands above, once attached
  std::mutex noted_mutex_;
  std::vector<rose_cgroup> noted_;
};

// Attaches a packet program to a cgroup and tells it its node.
[[nodiscard]] Result<Fd> attach_packets(const bpf_program* program, int attached, const Cgroup& cgroup, std::uint32_t node);

}  // namespace rose::observe
