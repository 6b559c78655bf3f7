// Removes the colours of terminals.
#pragma once

#include <string>
#include <string_view>

namespace rose::logs {

// The line without the escape sequences of terminals ("ESC[31m", "ESC]0;title BEL"). If the line contains any, the
// result is in `buffer`.
[[nodiscard]] std::string_view without_colours(std::string_view line, std::string& buffer);

}  // namespace rose::logs
