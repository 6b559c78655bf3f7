// Logs that say no times. Of a run that is under way, when each line was written can be seen; a failure's log without
// times is put on the time line of a run without faults, by the messages that both have.
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

// Follows how long the files of a run are, from a thread of its own; a few system calls each 2 ms.
class Watch {
 public:
  static constexpr std::size_t kMostMarks = 1'000'000;  // further growth is not noted
  struct Mark {
    std::uint64_t size = 0;
    std::int64_t ts_ns = 0;
  };
  using Growth = std::map<std::filesystem::path, std::vector<Mark>>;  // growing sizes

  // `files`: which there are by now; asked again and again, since they come one by one.
  explicit Watch(std::function<std::vector<Input>()> files);
  // Takes over what a Watch elsewhere has seen.
  explicit Watch(Growth growth) : marks_(std::move(growth)) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  void stop();
  // After stop().
  [[nodiscard]] const Growth& growth() const { return marks_; }
  [[nodiscard]] std::size_t marks() const { return count_; }  // of growth, so far
  // Gives each message of a file without times the moment at which its line was there, and puts the nodes' messages in
  // that order.
  void apply(Logs& logs) const;

 private:
  void follow(const std::stop_token& stop);

  std::function<std::vector<Input>()> files_;
  Growth marks_;
  std::atomic<std::size_t> count_ = 0;
  std::jthread thread_;
};

// As lines of text that lie with the run, with paths as they are in its folder; and back. What is no such line is left
// out.
[[nodiscard]] std::string growth_text(const Watch::Growth& growth, const std::filesystem::path& run_dir);
[[nodiscard]] Watch::Growth growth_of_text(std::string_view text, const std::filesystem::path& run_dir);

// Gives the messages of the failure's nodes that have no times those of the run without faults, which ended at
// `end_ns`: matched ones the same moment, others one just before the next that is matched, for what they tell of
// happened before it. What comes behind the last one that is matched may have come at any time from there on.
void align(Logs& failure, const Logs& normal, const Difference& difference, std::int64_t end_ns);

}  // namespace rose::logs
