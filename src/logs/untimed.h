// Finds times for logs without timestamps. For the logs of a run, a Watch observes when each line is written. For the
// logs of a failure, align() takes the times from a run without faults, by the messages that both logs contain.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "logs/compare.h"

namespace rose::logs {

// Records how a run's log files grow, in a separate thread. Makes a few system calls every 2 ms.
class Watch {
 public:
  static constexpr std::size_t kMostMarks = 1'000'000;  // after this many marks, no further growth is recorded
  struct Mark {
    std::uint64_t size = 0;  // bytes
    std::int64_t ts_ns = 0;  // when the file was first seen with this size; converted to the wall clock by stop()
  };
  using Growth = std::map<std::filesystem::path, std::vector<Mark>>;  // by file, with ascending sizes

  // `files` returns the files that exist now. It is called repeatedly, because nodes create their files at any time.
  explicit Watch(std::function<std::vector<Input>()> files);
  // Uses the growth that another Watch recorded.
  explicit Watch(Growth growth) : marks_(std::move(growth)) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  void stop();
  // Call this only after stop().
  [[nodiscard]] const Growth& growth() const { return marks_; }
  [[nodiscard]] std::size_t marks() const { return count_; }  // number of marks recorded so far
  // In files without timestamps, sets the time of each message to the time at which its line was written. Sorts each
  // node's messages by time.
  void apply(Logs& logs) const;

 private:
  void follow(const std::stop_token& stop);

  std::function<std::vector<Input>()> files_;
  Growth marks_;
  std::atomic<std::size_t> count_ = 0;
  std::jthread thread_;
};

// Converts the growth to text, which is kept with the run, and back. The text contains paths relative to the run's
// folder. Invalid lines are ignored.
[[nodiscard]] std::string growth_text(const Watch::Growth& growth, const std::filesystem::path& run_dir);
[[nodiscard]] Watch::Growth growth_of_text(std::string_view text, const std::filesystem::path& run_dir);

// Sets the times of those nodes of the failure that have no timestamps, from the run without faults, which ended at
// `end_ns`. A matched message gets the time of its counterpart. An unmatched message gets a time just before that of
// the next matched message, because what it reports happened earlier. Messages after the last matched one are spread
// over the remaining time.
void align(Logs& failure, const Logs& normal, const Difference& difference, std::int64_t end_ns);

}  // namespace rose::logs
