// What nodes print, line by line, from a given moment on. Sampled often rather than watched: a sample tells how
// long the file was before a moment, so that a line printed right after it is never missed.
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
  explicit LogTail(std::vector<std::filesystem::path> files);

  // Remembers how long the files are now.
  void sample(std::uint64_t now);

  // A reader that begins where the files ended at the last sample before `since` (0: at their beginning).
  struct Reader {
    std::vector<LogFollower> files;
    bool begun = false;
  };
  void begin(Reader& reader, std::uint64_t since) const;
  // Calls `line` for each whole line that is new; stops when it returns false.
  static void read(Reader& reader, const std::function<bool(std::string_view)>& line);

 private:
  struct Sample {
    std::uint64_t at = 0;
    std::vector<std::uint64_t> sizes;
  };
  std::vector<std::filesystem::path> files_;
  std::vector<Sample> samples_;  // the last few, oldest first
};

}  // namespace rose::inject
