// Reads what a message states about a wrong clock: by how much, and whether it is the clock of the node that logs the
// message. Uses the patterns of src/knowledge/clocks.toml. A message that states no amount counts only if its pattern
// is marked "unsaid". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "knowledge/meanings.h"

namespace rose::logs {

struct ClockWords {
  std::int64_t off_ns = 0;  // negative: the clock is behind, or was set back
  bool either_way = false;  // it is unknown whether the clock is ahead or behind
  // true: it is the clock of the node that logs the message; false: of another node, which the message may name
  bool own = false;
  bool stepped = false;  // true: the clock was set while the program ran; false: it may have been wrong from the start
};

// `low`: the message in lower case. `statements`: the matches in it. Returns nothing if no clock is reported as wrong.
[[nodiscard]] std::optional<ClockWords> read_clock_words(std::string_view low,
                                                         std::span<const knowledge::Statement> statements);

}  // namespace rose::logs
