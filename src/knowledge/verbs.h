// How often the names of functions occur in standard libraries (verbs.toml).
#pragma once

#include <string_view>

namespace rose::knowledge {

// The share (0..1) of library units (packages, classes, modules) that have a function with this name. `word`: in lower
// case. `more`: the function's name has further words, and `word` is its first one. 0 for rare names.
[[nodiscard]] double library_share(std::string_view word, bool more);

}  // namespace rose::knowledge
