// Steps of the wall clock while a tracer runs: somebody set it, or the machine slept. Events are stamped with the
// monotonic clock, and a dump turns all stamps into wall-clock time alike, so their order and distances stay right.
// What a step makes of their times, compared with what logs say, is told in sentences.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace rose::observe {

class ClockSteps {
 public:
  // Offsets are wall clock minus monotonic clock, as wall_offset_ns() reads them: apart from steps they do not change.
  explicit ClockSteps(std::int64_t offset_ns) : offset_ns_(offset_ns) {}

  // Call it now and then. `read` reads the offset; it is asked again before a step is believed: whoever reads two
  // clocks can be interrupted between them.
  template <typename Read>
  void look(std::int64_t monotonic_ns, const Read& read) {
    const std::int64_t first = read();
    if (differ(first, offset_ns_)) {
      if (const std::int64_t again = read(); !differ(first, again)) note(monotonic_ns, again);
    }
  }

  // For a dump that is written with `offset_ns`; `host` as the dump has it.
  [[nodiscard]] std::vector<std::string> sentences(const std::string& host, std::int64_t offset_ns) const;

 private:
  static constexpr std::int64_t kLeast = 1'000'000;  // below that it may be the reading
  static constexpr std::size_t kMost = 32;           // steps kept, the latest
  struct Step {
    std::int64_t at_ns = 0, change_ns = 0;  // monotonic clock, when it was noticed
  };
  static bool differ(std::int64_t a, std::int64_t b) { return a - b >= kLeast || b - a >= kLeast; }
  void note(std::int64_t monotonic_ns, std::int64_t offset_ns);

  std::int64_t offset_ns_;
  mutable std::mutex mutex_;  // of the steps: dumps are written by other threads
  std::deque<Step> steps_;
  std::uint64_t forgotten_ = 0;
};

}  // namespace rose::observe
