// Follows one log file line by line, as `tail -F` does, through appends, truncation and rotation. It polls: each call
// costs a few system calls, and the caller decides how often to call.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace rose {

class LogFollower {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{16} << 10;  // the rest of a longer line is dropped

  LogFollower() = default;
  // `folder`: the folder with the file, if another user may write to it (base/folder.h); empty if the user gave the
  // path.
  explicit LogFollower(std::filesystem::path file, std::filesystem::path folder = {})
      : path_(std::move(file)), folder_(std::move(folder)) {}

  // Sets where reading starts; by default, it starts at the beginning. A file that is created later is read from its
  // beginning.
  void begin_at(std::uint64_t offset);
  void begin_at_end();

  // Calls `line` for each new complete line, without its newline, and stops if it returns false. Text after the last
  // newline is kept until its line is complete or the file is replaced. Reads at most a few megabytes per call, so that
  // a file that grows fast does not delay other files. Returns true if more can be read now.
  bool read(const std::function<bool(std::string_view)>& line);

 private:
  bool open_now();
  [[nodiscard]] bool replaced() const;
  // 'again': the file may have more; 'stopped': the callback returned false.
  enum class Took { all, again, stopped };
  Took take(const std::function<bool(std::string_view)>& line, std::size_t& budget);

  std::filesystem::path path_, folder_;
  Fd file_;  // kept open, so that lines written just before a rotation are still read
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint64_t offset_ = 0;
  std::string partial_;  // the last line, while it has no newline yet
};

}  // namespace rose
