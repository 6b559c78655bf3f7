// Helpers for the tests of logs: functions that read the real logs in test/logs, and functions that read a text.
#pragma once

#include <catch2/catch.hpp>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "logs/reader.h"

namespace rose::logs::test {

inline std::filesystem::path log_file(const std::string& name) {
  return std::filesystem::path(ROSE_TEST_DIR) / "logs" / (name + ".log");
}

inline std::vector<std::filesystem::path> all_logs() {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(ROSE_TEST_DIR) / "logs"))
    if (entry.path().extension() == ".log") files.insert(entry.path());
  return {files.begin(), files.end()};
}

inline Logs read_files(const std::vector<Input>& inputs, Templates& templates, const ReadOptions& options = {}) {
  Result<Logs> logs = read_logs(inputs, options, templates);
  if (!logs) FAIL(logs.error().message);
  return *std::move(logs);
}

struct Read {
  Templates kinds;
  Logs logs;
  explicit Read(std::string text, const ReadOptions& options = {})
      : logs(read_text(std::move(text), {"a.log", "n1"}, options, kinds)) {}
  [[nodiscard]] const std::vector<Message>& messages() const { return logs.nodes.at(0).messages; }
  [[nodiscard]] std::string text(std::size_t i) const { return std::string(logs.text(messages().at(i))); }
  [[nodiscard]] const Source& source() const { return logs.sources.at(0); }
};

}  // namespace rose::logs::test
