// Glob matching. Header only, because code that is loaded into traced processes uses it too.
#pragma once

#include <cstddef>
#include <string_view>

namespace rose {

// '*' matches any run of characters including '/', '?' matches one character, all others match themselves.
[[nodiscard]] constexpr bool glob_match(std::string_view pattern, std::string_view text) {
  // Greedy, with one backtrack point: the last '*' seen. Constant space and no recursion, so a hostile pattern costs at
  // most |pattern| * |text| steps.
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
