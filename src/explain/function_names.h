// Normalises names of functions from stacks, symbols and agents. Private to explain.
#pragma once

#include <string>
#include <string_view>

#include "schedule/outcome.h"

namespace rose::explain {

inline constexpr double kOuter = 0.82;  // factor for each caller further out on a stack

// "server.(*queue[*server.Entry]).drain" and "Queue<int>::push": "server.(*queue).drain", "Queue::push". The instances
// of a generic function are one function in the source, and what they are instantiated with says nothing about it.
[[nodiscard]] std::string without_type_arguments(std::string function);
// A stack may contain `request` for a function that symbols call `(anonymous namespace)::request(int, char*)`: both
// have the same key. So do the instances of a generic function.
[[nodiscard]] std::string key_of(std::string function);
[[nodiscard]] bool is_base(std::string_view function);
// "save (store.c:44)"
[[nodiscard]] std::string at_place(const schedule::Frame& frame);

}  // namespace rose::explain
