// Small text helpers: globs, suggestions, joining.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rose {

// '*' matches any run of characters, '/' included; '?' one character; everything else itself.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view text);

// The candidate nearest to `word` by edit distance, when near enough to be a slip; else "".
[[nodiscard]] std::string closest(std::string_view word, const std::vector<std::string>& candidates);
// "did you mean 'x'?" or "".
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& candidates);

[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

// What a terminal may be shown: control characters, and bytes that are no UTF-8, as \xNN.
[[nodiscard]] std::string printable(std::string_view text);

// A node's name in an environment variable: '-' and '.' become '_'.
[[nodiscard]] std::string variable_name(std::string_view node);

}  // namespace rose
