// Tests whether a text begins with one of several words.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace rose {

// `beginnings`: any range of texts.
[[nodiscard]] constexpr bool begins_with_any(std::string_view text, const auto& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [text](std::string_view beginning) { return text.starts_with(beginning); });
}
[[nodiscard]] constexpr bool begins_with_any(std::string_view text,
                                             std::initializer_list<std::string_view> beginnings) {
  return begins_with_any<std::initializer_list<std::string_view>>(text, beginnings);
}

}  // namespace rose
