// Parses durations in messages.
#pragma once

#include <cstddef>
#include <string_view>

namespace rose::logs {

struct Span {
  double number = 0;    // the first number, without its unit
  double ns = 0;        // 0: no unit follows the number
  std::size_t end = 0;  // offset after the duration
};

// Parses a duration that begins with the digit at `at`: "59.9s", "3600123 ms", "5 seconds", "1m0.004s". `low` is in
// lower case. Makes no allocation.
[[nodiscard]] Span read_span(std::string_view low, std::size_t at);
// Parses hours, minutes and seconds that begin with the digit at `at`: "00:00:02.332". The caller must know from the
// text before them that they are a duration and not a time of day.
[[nodiscard]] Span read_clock_span(std::string_view text, std::size_t at);

}  // namespace rose::logs
