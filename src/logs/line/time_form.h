// Times in a form that rose.toml gives, where none of the usual ones (times.h) is right.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "logs/line/times.h"

namespace rose::logs {

// "%d.%m.%Y %H:%M:%S.%f": strftime's letters, and %f for a fraction of a second, %L for milliseconds, %s for seconds
// since 1970; what is wrong with the form, or "".
[[nodiscard]] std::string time_form_problem(std::string_view form);
[[nodiscard]] std::optional<TimeStamp> read_time_as(std::string_view text, std::string_view form);

}  // namespace rose::logs
