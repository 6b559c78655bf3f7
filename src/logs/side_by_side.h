// Two logs side by side: a row for each pair of matching lines, and a row for each line that only one of the logs has.
// If a long part matches, only the rows next to a difference are kept.
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
  std::string failure, run;  // one line of each log; "" if the log has no such line
  std::int64_t failure_ns = kNoTime, run_ns = kNoTime;
  // number of rows that this row replaces, because they match or because there are too many; 0: it is an ordinary row
  std::uint64_t left_out = 0;
};

struct SideBySide {
  std::string node;
  std::vector<SideBySideRow> rows;
};

// One element for each node of the failure, in the order of these nodes. Both logs must have been read with the same
// `kinds`.
[[nodiscard]] std::vector<SideBySide> side_by_side(const Logs& failure, const Logs& run, const Templates& kinds);

}  // namespace rose::logs
