// The level of a message.
#pragma once

#include <cstdint>
#include <string_view>

namespace rose::logs {

enum class Level : std::uint8_t { none, trace, debug, info, notice, warning, error, fatal };
[[nodiscard]] std::string_view level_name(Level level);  // "warning"; "" for none
// The level that a word in a log means, such as "WARN", "warning", "WRN" or "W". Level::none if the word is no level.
[[nodiscard]] Level level_of(std::string_view word);
// The level of a severity in syslog, which is from 0 (emergency) to 7 (debug).
[[nodiscard]] Level level_of_severity(int severity);

}  // namespace rose::logs
