// Small text helpers: globs, suggestions, joining.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/glob.h"

namespace rose {

// The candidate nearest to `word` by edit distance, when near enough to be a slip; else "".
[[nodiscard]] std::string closest(std::string_view word, const std::vector<std::string>& candidates);
// "did you mean 'x'?" or "".
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

// From left to right; what was put in is not looked at again. `what` is not empty.
[[nodiscard]] std::string replaced(std::string text, std::string_view what, std::string_view by);

// One word for /bin/sh, in single quotes.
[[nodiscard]] std::string shell_quoted(std::string_view text);
// The same, bare when the shell would take it as it stands.
[[nodiscard]] std::string shell_word(std::string_view text);

// What a terminal may be shown: control characters, and bytes that are no UTF-8, as \xNN.
[[nodiscard]] std::string printable(std::string_view text);

[[nodiscard]] std::string ordinal_text(std::int64_t n);  // "1st", "12th", "23rd"

// A node's name in an environment variable: '-' and '.' become '_'.
[[nodiscard]] std::string variable_name(std::string_view node);

}  // namespace rose
