// Detects steps of the wall clock during tracing (it was set, or the machine was suspended). Events have monotonic
// timestamps, which a dump converts to wall-clock time with a single offset. Their order and distances are always
// right, but timestamps before a step differ from those in logs; the sentences in the dump's header describe by how
// much.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace rose::observe {

class ClockSteps {
 public:
  // Offsets are wall clock minus monotonic clock, as wall_offset_ns() returns them. They change only by steps.
  explicit ClockSteps(std::int64_t offset_ns) : offset_ns_(offset_ns) {}

  // Call this periodically. `read` reads the offset; it is called again before a step is accepted, because the thread
  // may be preempted between reading the two clocks.
  template <typename Read>
  void look(std::int64_t monotonic_ns, const Read& read) {
    const std::int64_t first = read();
    if (differ(first, offset_ns_)) {
      if (const std::int64_t again = read(); !differ(first, again)) note(monotonic_ns, again);
    }
  }

  // The sentences for a dump that is written with `offset_ns`; `host` is its name in the dump.
  [[nodiscard]] std::vector<std::string> sentences(const std::string& host, std::int64_t offset_ns) const;

 private:
  static constexpr std::int64_t kLeast = 1'000'000;  // smaller changes may be due to reading the clocks
  static constexpr std::size_t kMost = 32;           // number of steps kept, the latest
  struct Step {
    std::int64_t at_ns = 0, change_ns = 0;  // monotonic clock, when the step was detected
  };
  static bool differ(std::int64_t a, std::int64_t b) { return a - b >= kLeast || b - a >= kLeast; }
  void note(std::int64_t monotonic_ns, std::int64_t offset_ns);

  std::int64_t offset_ns_;
  mutable std::mutex mutex_;  // protects the steps, because other threads write dumps
  std::deque<Step> steps_;
  std::uint64_t forgotten_ = 0;
};

}  // namespace rose::observe
