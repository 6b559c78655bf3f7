// Reads a systemd unit from the output of `systemctl show`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "draft/facts.h"

namespace rose::draft {

// Parses NAME=VALUE lines. Pure.
[[nodiscard]] Unit read_unit(std::string_view text);

// The words of ExecStart in what `busctl --json=short get-property` prints; `systemctl show` prints them without
// quotes. Empty if the text is something else. Pure.
[[nodiscard]] std::vector<std::string> read_exact_command(std::string_view json);

// Replaces the variables of a unit's word as systemd does: "$NAME" alone by the words of the value, "${NAME}" by the
// value, "$$" by "$". Pure.
[[nodiscard]] std::vector<std::string> expand_word(const std::string& word, const Variables& variables);

// Converts a time span such as "5s", "1min 30s" or "100ms" to nanoseconds. Returns 0 for "infinity" and for other
// texts.
[[nodiscard]] std::int64_t read_time_span(std::string_view text);

// Returns nothing if systemd does not run or does not know the unit; the caller then relies on what the processes show.
[[nodiscard]] std::optional<Unit> ask_unit(const std::string& name);

}  // namespace rose::draft
