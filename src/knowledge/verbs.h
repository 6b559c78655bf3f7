// How often the names of functions occur in standard libraries (verbs.toml).
#pragma once

#include <string_view>

namespace rose::knowledge {

// The share (0..1) of library units (packages, classes, modules) that have a function with this name; 0 for rare names.
// `word`: in lower case. `more`: `word` is only the first word of the function's name.
[[nodiscard]] double library_share(std::string_view word, bool more);

}  // namespace rose::knowledge
