// Reads stack traces that programs write into their logs: of Java, Python, Go, JavaScript, .NET, Ruby and Rust. Pure.
// The result is never larger than the given text.
#pragma once

#include <string_view>
#include <vector>

#include "schedule/outcome.h"

namespace rose::explain {

inline constexpr std::size_t kMostTraceFrames = 64;

// Returns the frames of the first trace, innermost first. For a Java exception, these are the frames of the root cause.
// Empty if the text contains no trace.
[[nodiscard]] std::vector<schedule::Frame> read_stack_trace(std::string_view text);

}  // namespace rose::explain
