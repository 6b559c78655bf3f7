// Text inside HTML, SVG and XML. Names and paths come from the traced system: whatever they hold, they stay text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rose::report {

// Markup characters become entities; control characters, bytes that are not UTF-8, what XML 1.0 does not allow and
// what turns the direction of writing (a path must not look like another one) become \xNN. Newlines and tabs stay.
[[nodiscard]] std::string escape(std::string_view text);

// At most `most` bytes of it, cut between characters; "..." stands for the rest. Before escape().
[[nodiscard]] std::string shorten(std::string_view text, std::size_t most);

}  // namespace rose::report
