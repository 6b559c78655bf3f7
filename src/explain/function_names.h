// Names of functions as stacks, symbols and agents have them. Private to explain.
#pragma once

#include <string>
#include <string_view>

#include "schedule/outcome.h"

namespace rose::explain {

inline constexpr double kOuter = 0.82;  // of a stack: each frame, and caller, further out one time more

// A stack may know a function as `request` that symbols call `(anonymous namespace)::request(int, char*)`: the same for
// both.
[[nodiscard]] std::string key_of(std::string function);
[[nodiscard]] bool is_base(std::string_view function);
// "save (store.c:44)"
[[nodiscard]] std::string at_place(const schedule::Frame& frame);

}  // namespace rose::explain
