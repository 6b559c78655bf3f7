// Stack traces that programs write into their logs: of Java, Python, Go, JavaScript, .NET, Ruby and Rust. Pure; bounded
// by the text that is given.
#pragma once

#include <string_view>
#include <vector>

#include "schedule/outcome.h"

namespace rose::explain {

inline constexpr std::size_t kMostTraceFrames = 64;

// The frames of the first trace, innermost first; for Java exceptions those of the root cause. Empty if the text has
// none.
[[nodiscard]] std::vector<schedule::Frame> read_stack_trace(std::string_view text);

}  // namespace rose::explain
