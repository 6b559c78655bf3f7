// Replaces the variable parts of a message by placeholders, and finds the words that name an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rose::logs {

// Masks a text: "dial tcp 127.0.0.1:6223: connection refused" becomes "dial tcp <addr>: connection refused". The
// placeholders are <n> (number), <addr>, <path>, <url> and <id>. Reads only the first line, at most kMostToMask
// characters of it, and stops after kMostMasked masked characters.
inline constexpr std::size_t kMostMasked = 1000;
inline constexpr std::size_t kMostToMask = 4 * kMostMasked;
void mask(std::string_view text, std::string& masked);

// A hash of the words in a masked text that name an error; 0 if there are none.
[[nodiscard]] std::uint32_t error_words(std::string_view masked);

}  // namespace rose::logs
