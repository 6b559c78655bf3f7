// Two logs side by side: lines that both have in one row, what only one has in a row of its own. Where both go on alike
// for long, only the lines around a difference are kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "logs/compare.h"

namespace rose::logs {

inline constexpr std::size_t kMostBesideRows = 150;  // of a node
inline constexpr std::size_t kMostBesideText = 240;  // bytes of a line
inline constexpr std::size_t kAround = 3;            // rows alike that are kept before and behind a difference

struct BesideRow {
  std::string failure, run;  // one line each; "" where the other has no such line
  std::int64_t failure_ns = kNoTime, run_ns = kNoTime;
  std::uint64_t left_out = 0;  // rows that were alike, or too many, in place of this one
};

struct Beside {
  std::string node;
  std::vector<BesideRow> rows;
};

// Node by node, as the failure's; both were read with the same `kinds`.
[[nodiscard]] std::vector<Beside> beside(const Logs& failure, const Logs& run, const Templates& kinds);

}  // namespace rose::logs
