// Spans of time as messages write them.
#pragma once

#include <cstddef>
#include <string_view>

namespace rose::logs {

struct Span {
  double number = 0;    // the first number
  double ns = 0;        // 0: no unit follows
  std::size_t end = 0;  // behind it
};

// At a digit, in small letters: "59.9s", "3600123 ms", "5 seconds", "1m0.004s". Without allocation.
[[nodiscard]] Span read_span(std::string_view low, std::size_t at);
// At a digit: hours, minutes and seconds as a clock has them, "00:00:02.332". What stands before it tells whether it is
// a span or a time of day.
[[nodiscard]] Span read_clock_span(std::string_view text, std::size_t at);

}  // namespace rose::logs
