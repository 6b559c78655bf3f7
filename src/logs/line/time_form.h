// Parses times in a format given in rose.toml, where none of the built-in formats (times.h) is right.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "logs/line/times.h"

namespace rose::logs {

// What is wrong with the format, or "". It has strftime's conversions, %f for a fraction of a second, %L for
// milliseconds, and %s for seconds since 1970: "%d.%m.%Y %H:%M:%S.%f".
[[nodiscard]] std::string time_form_problem(std::string_view form);
[[nodiscard]] std::optional<TimeStamp> read_time_as(std::string_view text, std::string_view form);

}  // namespace rose::logs
