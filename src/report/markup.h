// Escapes text for HTML, SVG and XML. Names and paths come from the traced system and must never become markup.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/redact.h"

namespace rose::report {

// Markup characters become entities. Control characters, bytes that are not UTF-8, characters that XML 1.0 forbids and
// those that change the writing direction (which could disguise a path) become \xNN. Newlines and tabs are kept.
[[nodiscard]] std::string escape(std::string_view text);

// Cuts to at most `most` bytes at a character boundary and appends "...". Call it before escape().
[[nodiscard]] std::string shorten(std::string_view text, std::size_t most);

// A page with replacements by the redactor, in its text and in the labels of its elements (`title`, `aria-label`);
// styles and scripts, which are rose's own, are unchanged. `html` must be a page that rose wrote.
[[nodiscard]] std::string redacted(std::string_view html, Redactor& redactor);

}  // namespace rose::report
