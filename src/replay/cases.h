// Finds the test cases of `rose replay`. These are schedules that the user named, or that are in folders which the user
// named, each with its configuration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::replay {

struct Case {
  std::string name;  // unique; a relative path without "..", so that it can be used as the name of a folder
  std::filesystem::path schedule;
  std::filesystem::path config;
};

struct CaseQuery {
  std::vector<std::string> places;   // schedule files, and folders that are searched recursively
  std::string config;                // see find_cases()
  std::vector<std::string> filter;   // globs; the name or the path must match one of them; empty: all match
  std::vector<std::string> exclude;  // globs; neither the name nor the path may match one of them

  // True if the user named one schedule by its file. It is then no suite, and `config` is used as given.
  [[nodiscard]] bool is_single() const;
};

// A folder that is deeper than this, or contains more files than this, is refused.
inline constexpr int kDeepestFolder = 16;
inline constexpr std::size_t kMostFiles = 100'000;

// A TOML file with `version` or [[fault]] is a schedule. Other TOML files are ignored, and so are folders whose name
// begins with a dot. If `config` contains a slash, it applies to all schedules. Otherwise, because each test may have
// its own configuration, it is searched beside each schedule, then above it up to the named folder, and then in the
// current folder. The cases are sorted by name within each place. Fails with ErrorKind::input if a place does not
// exist, a folder contains no schedule, a TOML file cannot be parsed, a schedule has no configuration, or nothing
// matches the filters.
[[nodiscard]] Result<std::vector<Case>> find_cases(const CaseQuery& query);

}  // namespace rose::replay
