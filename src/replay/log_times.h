// Determines when lines of nodes' logs were written, for logs without times: watches the files grow.
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
  // Watches the *.log files in these folders from now on, until it is destroyed.
  [[nodiscard]] static Result<LogTimes> watch(const std::vector<std::filesystem::path>& folders);
  LogTimes(LogTimes&&) noexcept;
  LogTimes& operator=(LogTimes&&) = delete;
  ~LogTimes();

  void stop();
  // After stop(): the time of each line, wall clock, delayed by the wake-up latency. Lines that existed before get the
  // time at which watching began.
  [[nodiscard]] std::vector<std::int64_t> times(const std::filesystem::path& file) const;

 private:
  struct Watch;
  explicit LogTimes(std::unique_ptr<Watch> watch);
  std::unique_ptr<Watch> watch_;
};

}  // namespace rose::replay
