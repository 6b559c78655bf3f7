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
// Parses a duration in hours, minutes and seconds that begins with the digit at `at`: "00:00:02.332". A time of day
// looks the same, so the caller must know from the preceding text that it is a duration.
[[nodiscard]] Span read_clock_span(std::string_view text, std::size_t at);

}  // namespace rose::logs
