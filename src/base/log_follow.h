// Follows one log file, line by line, as `tail -F` does: through appends, truncation and rotation. Looked at when
// asked (a few system calls); whoever wants to know soon asks often.
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
  static constexpr std::size_t kLongestLine = std::size_t{16} << 10;  // the rest of a longer one is left out

  LogFollower() = default;
  explicit LogFollower(std::filesystem::path file) : path_(std::move(file)) {}

  // Where reading begins; without either, at the beginning. A file that comes later is read from its beginning.
  void begin_at(std::uint64_t offset);
  void begin_at_end();

  // Calls `line` for each whole line that is new, without its newline; stops when it returns false. What is
  // behind the last newline waits for the rest of its line, unless the file was replaced. At most some
  // megabytes a call, so that a flood in one file holds up nothing else; true: there is more to read now.
  bool read(const std::function<bool(std::string_view)>& line);

 private:
  bool open_now();
  [[nodiscard]] bool replaced() const;
  // 'again': the file may have more; 'stopped': the caller has had enough.
  enum class Took { all, again, stopped };
  Took take(const std::function<bool(std::string_view)>& line, std::size_t& budget);

  std::filesystem::path path_;
  Fd file_;  // kept open: what was written before a rotation is still read
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint64_t offset_ = 0;
  std::string partial_;  // of a line that is not whole yet
};

}  // namespace rose
