// The lines that nodes print from a given time on. Files are sampled often instead of being watched. A sample stores
// the lengths of the files at its time, so that no line printed after that time is missed.
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

  // A reader that starts where the files ended at the last sample before `since` (0: at their beginning).
  struct Reader {
    std::vector<LogFollower> files;
    bool begun = false;
  };
  void begin(Reader& reader, std::uint64_t since) const;
  // Calls `line` for each new complete line; stops if it returns false.
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
