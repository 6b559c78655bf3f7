// Normalises names of functions from stacks, symbols and agents. Private to explain.
#pragma once

#include <string>
#include <string_view>

#include "schedule/outcome.h"

namespace rose::explain {

inline constexpr double kOuter = 0.82;  // factor for each caller further out on a stack

// Removes type arguments: "server.(*queue[*server.Entry]).drain" and "Queue<int>::push" become "server.(*queue).drain"
// and "Queue::push". All instances of a generic function are one function in the source, and their type arguments do
// not help to identify it.
[[nodiscard]] std::string without_type_arguments(std::string function);
// A key that is equal for all forms of a function's name. A stack may contain `request` where the symbols have
// `(anonymous namespace)::request(int, char*)`; the instances of a generic function have different type arguments.
[[nodiscard]] std::string key_of(std::string function);
[[nodiscard]] bool is_base(std::string_view function);
// True if the code of `function`, a closure, is in `outer` or was inlined there. Go: "kv.(*Store).Save.func1" is in
// "kv.(*Store).Save", "kv.Save.(*Log).Info.func2" was inlined into "kv.Save"; Java: "x.C.lambda$run$0" in "x.C.run";
// C++: "kv::save(int)::{lambda()#1}::operator()() const" in "kv::save(int)"; Rust: "kv::save::{{closure}}" in
// "kv::save".
[[nodiscard]] bool is_closure_in(std::string_view function, std::string_view outer);
// "save (store.c:44)"
[[nodiscard]] std::string at_place(const schedule::Frame& frame);

}  // namespace rose::explain
