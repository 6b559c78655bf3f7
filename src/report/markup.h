// Escapes text for HTML, SVG and XML. Names and paths come from the traced system and must never become markup.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rose::report {

// Markup characters become entities. Control characters, bytes that are not UTF-8, characters that XML 1.0 forbids and
// those that change the writing direction (which could disguise a path) become \xNN. Newlines and tabs are kept.
[[nodiscard]] std::string escape(std::string_view text);

// Cuts to at most `most` bytes at a character boundary and appends "...". Call it before escape().
[[nodiscard]] std::string shorten(std::string_view text, std::size_t most);

}  // namespace rose::report
