// Determines when the lines of nodes' logs were written, for logs without times, by watching how the files grow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace rose::replay {

class LogTimes {
 public:
  // Watches the *.log files in these folders from now on until the object is destroyed.
  [[nodiscard]] static Result<LogTimes> watch(const std::vector<std::filesystem::path>& folders);
  LogTimes(LogTimes&&) noexcept;
  LogTimes& operator=(LogTimes&&) = delete;
  ~LogTimes();

  void stop();
  // Call this after stop(). Returns the wall-clock time of each line, which is late by the time that this process needs
  // to wake up. Lines that were written before watch() have the time at which watching began.
  [[nodiscard]] std::vector<std::int64_t> times(const std::filesystem::path& file) const;

 private:
  struct Watch;
  explicit LogTimes(std::unique_ptr<Watch> watch);
  std::unique_ptr<Watch> watch_;
};

}  // namespace rose::replay
