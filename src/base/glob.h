// Globs. Needs nothing but the header: what is loaded into other people's processes uses it, too.
#pragma once

#include <cstddef>
#include <string_view>

namespace rose {

// '*' matches any run of characters, '/' included; '?' one character; everything else itself.
[[nodiscard]] constexpr bool glob_match(std::string_view pattern, std::string_view text) {
  // Greedy with one backtrack point: the last '*' seen. Linear space, no recursion, so a hostile
  // pattern costs at most |pattern| * |text|.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace rose
