// Reads the lines that a node logs from a given time on. The caller frequently takes samples of the lengths of the log
// files. A reader starts at the lengths in the last sample before the given time, so it misses no line logged after
// that time. It may also return lines logged between the sample and that time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "base/log_follow.h"

namespace rose::inject {

class LogTail {
 public:
  // All files must be in the node's `folder`.
  LogTail(std::vector<std::filesystem::path> files, std::filesystem::path folder);

  // Stores the current lengths of the files.
  void sample(std::uint64_t now);

  // A reader that starts where the files ended at the last sample before `since`, or at their beginning if `since` is 0
  // or no sample is that old.
  struct Reader {
    std::vector<LogFollower> files;
    bool begun = false;
  };
  void begin(Reader& reader, std::uint64_t since) const;
  // Calls `line` for each new complete line; stops if `line` returns false.
  static void read(Reader& reader, const std::function<bool(std::string_view)>& line);

 private:
  struct Sample {
    std::uint64_t at = 0;
    std::vector<std::uint64_t> sizes;
  };
  std::vector<std::filesystem::path> files_;
  std::filesystem::path folder_;
  std::vector<Sample> samples_;  // the most recent samples, oldest first
};

}  // namespace rose::inject
