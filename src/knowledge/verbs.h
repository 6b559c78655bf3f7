// What functions of standard libraries are called (verbs.toml).
#pragma once

#include <string_view>

namespace rose::knowledge {

// The share of the libraries' units (packages, classes, modules) that have a function whose name is this word, in lower
// case, or begins with it where `more` words follow; 0 for a rare one.
[[nodiscard]] double library_share(std::string_view word, bool more);

}  // namespace rose::knowledge
