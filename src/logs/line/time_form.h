// Parses times in a format given in rose.toml, for logs whose times have none of the built-in formats (times.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "logs/line/times.h"

namespace rose::logs {

// The reason why the format is invalid; "" if it is valid. A format has strftime's conversions, %f for a fraction of a
// second, %L for milliseconds, and %s for seconds since 1970: "%d.%m.%Y %H:%M:%S.%f".
[[nodiscard]] std::string time_form_problem(std::string_view form);
[[nodiscard]] std::optional<TimeStamp> read_time_as(std::string_view text, std::string_view form);

}  // namespace rose::logs
