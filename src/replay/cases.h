// Finds the test cases of `rose replay`: schedules that were named or are in folders, each with its configuration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::replay {

struct Case {
  std::string name;  // unique; a relative path without ".." that can be used as a folder's name
  std::filesystem::path schedule;
  std::filesystem::path config;
};

struct CaseQuery {
  std::vector<std::string> places;   // schedule files, and folders that are searched recursively
  std::string config;                // see find_cases()
  std::vector<std::string> filter;   // globs for name or path, of which one must match; empty: all
  std::vector<std::string> exclude;  // globs of which none may match

  // A single schedule named by its file: not a suite, and `config` is used as given.
  [[nodiscard]] bool is_single() const;
};

// Deeper folders, or folders with more files, are refused.
inline constexpr int kDeepestFolder = 16;
inline constexpr std::size_t kMostFiles = 100'000;

// A TOML file with `version` or [[fault]] is a schedule; other TOML files are ignored, and so are folders whose name
// begins with a dot. A `config` without a slash is searched beside each schedule found in a folder and above it, up to
// that folder, then in the current folder, because each test has its own. Otherwise it applies to all. Sorted by name
// within each place. Returns ErrorKind::input if a place does not exist, a folder contains no schedule, a TOML file
// cannot be parsed, a schedule has no configuration, or the filters match nothing.
[[nodiscard]] Result<std::vector<Case>> find_cases(const CaseQuery& query);

}  // namespace rose::replay
