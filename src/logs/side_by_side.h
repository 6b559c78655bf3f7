// Two logs side by side: a row for each pair of matched lines, and one for each line that only one of the logs has. Of
// long matching parts, only the rows around a difference are kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/compare.h"

namespace rose::logs {

inline constexpr std::size_t kMostSideBySideRows = 150;  // rows of one node
inline constexpr std::size_t kMostSideBySideText = 240;  // bytes of one line
inline constexpr std::size_t kContextRows = 3;           // matching rows that are kept before and after a difference

struct SideBySideRow {
  std::string failure, run;  // one line each; "" if that log has no such line
  std::int64_t failure_ns = kNoTime, run_ns = kNoTime;
  std::uint64_t left_out = 0;  // how many rows this row replaces: matching ones, or those over the limit
};

struct SideBySide {
  std::string node;
  std::vector<SideBySideRow> rows;
};

// One element for each node of the failure, in that order. Both logs must have been read with the same `kinds`.
[[nodiscard]] std::vector<SideBySide> side_by_side(const Logs& failure, const Logs& run, const Templates& kinds);

}  // namespace rose::logs
