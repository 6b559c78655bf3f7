// Predicates on characters and words that the readers of lines share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/ascii.h"

namespace rose::logs {

[[nodiscard]] inline bool blank_char(char c) { return c == ' ' || c == '\t'; }
[[nodiscard]] inline bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}
[[nodiscard]] inline bool is_any(std::string_view key, std::span<const std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}
// The value of the first 18 digits; -1 if one of those characters is not a digit.
[[nodiscard]] inline std::int64_t number_of(std::string_view digits) {
  std::int64_t value = 0;
  for (const char c : digits.substr(0, 18)) {
    if (!is_digit(c)) return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace rose::logs
