// Compose syntax for variables, command lines and variable files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rose::compose {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Returns a variable's value, or nothing if it is not set.
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

// Substitutes "${TAG:-7}", "$TAG" and "$$". Names without a value are appended to `unresolved`.
[[nodiscard]] std::string interpolated(std::string_view text, const Lookup& lookup,
                                       std::vector<std::string>& unresolved);

// Splits "a b 'c d'" into words with a shell's quoting rules.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view text);

// Parses KEY=VALUE lines as Compose reads .env.
[[nodiscard]] Variables read_dot_env(std::string_view text);

}  // namespace rose::compose
