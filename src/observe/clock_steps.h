// Detects steps of the wall clock during tracing (the clock was set, or the machine was suspended). Events have
// monotonic timestamps, which a dump converts to wall-clock time with a single offset. The order of events and the time
// between them are always right, but timestamps before a step differ from those in logs. Sentences in the dump's header
// say by how much.
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

  // Sentences about the steps, for a dump that is written with `offset_ns`. `host` is the host's name in the dump.
  [[nodiscard]] std::vector<std::string> sentences(const std::string& host, std::int64_t offset_ns) const;

 private:
  static constexpr std::int64_t kLeast = 1'000'000;  // smaller changes may be due to reading the clocks
  static constexpr std::size_t kMost = 32;           // number of steps that are kept, the most recent ones
  struct Step {
    std::int64_t at_ns = 0, change_ns = 0;  // at_ns: monotonic time at which the step was detected
  };
  static bool differ(std::int64_t a, std::int64_t b) { return a - b >= kLeast || b - a >= kLeast; }
  void note(std::int64_t monotonic_ns, std::int64_t offset_ns);

  std::int64_t offset_ns_;
  mutable std::mutex mutex_;  // protects the steps, because other threads write dumps
  std::deque<Step> steps_;
  std::uint64_t forgotten_ = 0;
};

}  // namespace rose::observe
