// A systemd unit, as `systemctl show` describes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "draft/facts.h"

namespace rose::draft {

// Pure: NAME=VALUE lines.
[[nodiscard]] Unit read_unit(std::string_view text);

// "5s", "1min 30s", "100ms", "infinity" (0) -> nanoseconds.
[[nodiscard]] std::int64_t read_time_span(std::string_view text);

// Nothing when systemd does not run or does not know it: what the processes tell has to do.
[[nodiscard]] std::optional<Unit> ask_unit(const std::string& name);

}  // namespace rose::draft
