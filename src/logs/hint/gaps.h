// Gaps: times in which a node logs nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "logs/reader.h"

namespace rose::logs {

// A gap is a pause if it is at least this many times as long as the longest gap in the run without faults.
inline constexpr std::int64_t kGapFactor = 4;
// The usual gap of a node is its kGapsForUsual-th longest gap.
inline constexpr std::size_t kGapsForUsual = 3;

// The longest time between two successive messages of a node, in ns.
[[nodiscard]] std::int64_t longest_gap(const NodeLog& node);
// The usual gap of a node, in ns: its third longest gap, because the fault may have caused the longer gaps. 0 if the
// log has too few messages.
[[nodiscard]] std::int64_t usual_gap(const NodeLog& node);

}  // namespace rose::logs
