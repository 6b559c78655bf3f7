// What a message says about a clock that is wrong: by how much, and whether it is the clock of the node that logs it.
// The words are those of src/knowledge/clocks.toml; messages that name no amount are ignored. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "knowledge/meanings.h"

namespace rose::logs {

struct ClockWords {
  std::int64_t off_ns = 0;  // negative: it is behind, or was set back
  bool either_way = false;  // it is unknown whether it is ahead or behind
  bool own = false;         // of the node that logs it; else of one that the message may name
  bool stepped = false;     // it was set while the program ran; else it may have been wrong all along
};

// `low`: in small letters; `statements`: what the message says.
[[nodiscard]] std::optional<ClockWords> read_clock_words(std::string_view low,
                                                         std::span<const knowledge::Statement> statements);

}  // namespace rose::logs
