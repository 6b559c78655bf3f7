// The test cases of `rose replay`: the schedules that were named and those found in folders, each with the
// configuration it is replayed with.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace rose::replay {

struct Case {
  std::string name;  // unlike all others of its query; a relative path without ".." that can name a folder
  std::filesystem::path schedule;
  std::filesystem::path config;
};

struct CaseQuery {
  std::vector<std::string> places;   // schedule files, and folders that are searched for them with all that is below
  std::string config;                // see below
  std::vector<std::string> filter;   // globs over name or path: one must match; none: all
  std::vector<std::string> exclude;  // none may match

  // One schedule by its file name: no suite, `config` is taken as it stands.
  [[nodiscard]] bool is_single() const;
};

// Folders searched deeper than this, or with more files, are refused.
inline constexpr int kDeepestFolder = 16;
inline constexpr std::size_t kMostFiles = 100'000;

// A schedule in a folder is a TOML file with `version` or [[fault]]; other TOML files are none of ours. Folders whose
// name begins with a dot are left out. A `config` without a slash is looked for beside each schedule that a folder gave
// and above it, up to that folder, then in the current one: each test brings its own. Else it is the one for all.
// Sorted by name within each place. Error (input): a place that is not there, a folder without a schedule, a TOML file
// that cannot be read as one, a schedule without a configuration, filters that leave nothing.
[[nodiscard]] Result<std::vector<Case>> find_cases(const CaseQuery& query);

}  // namespace rose::replay
