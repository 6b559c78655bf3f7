// When the lines of nodes' logs were written, also where they do not say: watches the files grow.
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
  // Watches the *.log files of these folders, from now on; stops when it goes.
  [[nodiscard]] static Result<LogTimes> watch(const std::vector<std::filesystem::path>& folders);
  LogTimes(LogTimes&&) noexcept;
  LogTimes& operator=(LogTimes&&) = delete;
  ~LogTimes();

  void stop();
  // After stop(): by line, from the first on, wall clock; late by what it takes to be woken up. What was there before
  // the watch began has the time of its beginning.
  [[nodiscard]] std::vector<std::int64_t> times(const std::filesystem::path& file) const;

 private:
  struct Watch;
  explicit LogTimes(std::unique_ptr<Watch> watch);
  std::unique_ptr<Watch> watch_;
};

}  // namespace rose::replay
