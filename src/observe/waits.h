// Uninterruptible waits (D state), put together from samples of who waits. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "bpf/tracer.h"

namespace rose::observe {

class Waits {
 public:
  // `interval_ns`: between two samples. One that comes late proves nothing of the time it is late by.
  Waits(std::int64_t threshold_ns, std::int64_t interval_ns) : threshold_ns_(threshold_ns), interval_ns_(interval_ns) {}

  struct Wait {
    std::uint32_t tgid = 0, tid = 0, node = 0;
    std::uint32_t flags = 0;                // rose_process_flag, as of its beginning
    std::int64_t begin_ns = 0, end_ns = 0;  // of the samples that saw it first, and no longer; that one when it was due
  };
  // One sample: every thread that waited at `now_ns`. Returns the waits that are over and lasted at least the
  // threshold. A full disk's queue holds up many threads of a process at once: of those that go on between the same
  // two samples the longest stands for all.
  [[nodiscard]] std::vector<Wait> sample(std::span<const rose_blocked> blocked, std::int64_t now_ns);
  // Waits that are not over, the longest of each process.
  [[nodiscard]] std::vector<Wait> ongoing(std::int64_t now_ns) const;

 private:
  struct Going {
    std::uint64_t start_ns = 0, switches = 0;
    Wait wait;  // end_ns: of the last sample that saw it
  };
  [[nodiscard]] std::int64_t end_of(const Going& going, std::int64_t now_ns) const;
  // Threads waiting at once that are looked at; the same limit bounds memory and the time a sample takes.
  static constexpr std::size_t kMost = 16384;

  std::int64_t threshold_ns_, interval_ns_;
  std::map<std::uint32_t, Going> going_;  // by thread
};

}  // namespace rose::observe
