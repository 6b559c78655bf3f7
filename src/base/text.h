// Text helpers: suggestions for typing errors, quoting, joining.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/glob.h"

namespace rose {

// The candidate with the smallest edit distance to `word`, or "" if none is close enough to be a typing error.
[[nodiscard]] std::string closest(std::string_view word, const std::vector<std::string>& candidates);
// "did you mean 'x'?", or "" if nothing is close.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

// Replaces from left to right; inserted text is not searched again. `what` must not be empty.
[[nodiscard]] std::string replaced(std::string text, std::string_view what, std::string_view by);

// Quotes `text` in single quotes as one word for /bin/sh.
[[nodiscard]] std::string shell_quoted(std::string_view text);
// Like shell_quoted, but leaves words alone that need no quotes.
[[nodiscard]] std::string shell_word(std::string_view text);

// Text that is safe to print on a terminal: control characters and bytes that are not UTF-8 become \xNN.
[[nodiscard]] std::string printable(std::string_view text);

[[nodiscard]] std::string ordinal_text(std::int64_t n);  // "1st", "12th", "23rd"

// The node's name as part of an environment variable's name: '-' and '.' become '_'.
[[nodiscard]] std::string variable_name(std::string_view node);

}  // namespace rose
