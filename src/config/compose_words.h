// How Compose files spell things: variables, lines of words, files of variables. Shared by all who read them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rose::compose {

using Variables = std::vector<std::pair<std::string, std::string>>;

// A variable's value; nothing when it has none.
using Lookup = std::function<std::optional<std::string>(const std::string&)>;

// "${TAG:-7}", "$TAG", "$$"; names without a value go to `unresolved`.
[[nodiscard]] std::string interpolated(std::string_view text, const Lookup& lookup,
                                       std::vector<std::string>& unresolved);

// "a b 'c d'" as words, with quotes as a shell has them.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view text);

// KEY=VALUE lines, as Compose reads .env.
[[nodiscard]] Variables read_dot_env(std::string_view text);

}  // namespace rose::compose
