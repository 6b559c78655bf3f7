// Detects uninterruptible waits (D state) and pauses by the freezer of cgroup v1 from periodic samples of waiting
// threads. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "bpf/tracer.h"

namespace rose::observe {

class Waits {
 public:
  // `interval_ns`: time between samples. If a sample is late, its additional delay does not count as waiting time.
  Waits(std::int64_t threshold_ns, std::int64_t interval_ns) : threshold_ns_(threshold_ns), interval_ns_(interval_ns) {}

  struct Wait {
    std::uint32_t tgid = 0, tid = 0, node = 0;  // tgid and tid are 0 for a wait in the freezer
    std::uint32_t flags = 0;                    // rose_process_flag at the beginning of the wait
    // begin_ns: time of the first sample that contains the wait. end_ns: time at which the first sample that does not
    // contain it was due.
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  // Processes a sample with every thread that waited at `now_ns`. Returns the waits that have ended and reached the
  // threshold. A saturated disk blocks many threads of a process at once, so if several waits of a process end between
  // two samples, only the longest is returned. For waits in the freezer, one wait is returned for each node.
  [[nodiscard]] std::vector<Wait> sample(std::span<const rose_blocked> blocked, std::int64_t now_ns);
  // Waits that have not ended, the longest of each process.
  [[nodiscard]] std::vector<Wait> ongoing(std::int64_t now_ns) const;

 private:
  struct Ongoing {
    std::uint64_t start_ns = 0, switches = 0;
    Wait wait;  // end_ns: time of the last sample that contains it
  };
  [[nodiscard]] std::int64_t end_of(const Ongoing& ongoing_wait, std::int64_t now_ns) const;
  // Limit of threads in a sample; it bounds the memory and time that a sample takes.
  static constexpr std::size_t kMost = 16384;

  std::int64_t threshold_ns_, interval_ns_;
  std::map<std::uint32_t, Ongoing> ongoing_;  // by thread
};

}  // namespace rose::observe
