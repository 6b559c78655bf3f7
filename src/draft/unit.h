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

// "5s", "1min 30s", "100ms" or "infinity" (0) in nanoseconds.
[[nodiscard]] std::int64_t read_time_span(std::string_view text);

// Returns nothing if systemd does not run or does not know the unit; the caller then relies on what the processes show.
[[nodiscard]] std::optional<Unit> ask_unit(const std::string& name);

}  // namespace rose::draft
