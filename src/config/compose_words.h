// Compose syntax for variables, command lines and variable files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace rose::compose {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Returns a variable's value, or nothing if it is not set.
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

// Substitutes "${TAG:-7}", "$TAG" and "$$". A dollar before anything else is kept, as in "$2a$10$". Names without a
// value are appended to `unresolved`. The error is a sentence about the first "${...}" that is not a variable, or about
// the first variable that the text requires ("${TAG:?}") and that has no value.
[[nodiscard]] Expected<std::string, std::string> interpolated(std::string_view text, const Lookup& lookup,
                                                              std::vector<std::string>& unresolved);

// The text to which Compose converts an unquoted value in a map, such as an environment variable: "TRUE" becomes
// "true", 1.50 becomes "1.5", 010 becomes "8".
[[nodiscard]] std::string plain_value(std::string_view text);

// Splits "a b 'c d'" into words with Compose's rules: those of a shell, but an unquoted operator (; & | < >) ends the
// command, and what follows is ignored. Returns nothing if quotes are open or parentheses stand alone, which Compose
// refuses.
[[nodiscard]] std::optional<std::vector<std::string>> shell_words(std::string_view text);

// Describes a line that cannot be read as KEY=VALUE.
struct WrongLine {
  int line = 0;
  std::string what;
};
// Parses a file of variables as Compose does: comments, `export`, quotes, escapes, and variables in values, which come
// from `lookup` or from lines above. A name alone takes its value from `lookup`.
[[nodiscard]] Expected<Variables, WrongLine> read_dot_env(std::string_view text, const Lookup& lookup);

// The project's name in the form that Compose uses: lower-case letters, digits, '-' and '_'.
[[nodiscard]] std::string project_name(std::string_view text);

}  // namespace rose::compose
