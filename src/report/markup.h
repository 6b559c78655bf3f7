// Escapes text for HTML, SVG and XML. Names and paths come from the traced system and must never become markup.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/redact.h"

namespace rose::report {

// Markup characters become entities. The following become \xNN: control characters, bytes that are not UTF-8,
// characters that XML 1.0 forbids, and characters that change the writing direction, because they could disguise a
// path. Newlines and tabs are kept.
[[nodiscard]] std::string escape(std::string_view text);

// Cuts the text to at most `most` bytes at the boundary of a character, and appends "...". Call it before escape().
[[nodiscard]] std::string shorten(std::string_view text, std::size_t most);

// Lets `redactor` replace names and addresses in the text of the page and in those attributes of elements that people
// read (`title`, `aria-label`, `href`). Styles and scripts are not changed, because they are rose's own. `html` must be
// a page that rose wrote.
[[nodiscard]] std::string redacted(std::string_view html, Redactor& redactor);

}  // namespace rose::report
