#include "logs/line/tokens.h"

#include <algorithm>

#include "base/ascii.h"
#include "logs/line/chars.h"

namespace rose::logs {

bool hex_pointer(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return text.size() >= 8 && text.size() <= 16 &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool source_place(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !is_number(text.substr(colon + 1))) return false;
  const std::string_view file = text.substr(0, colon);
  const std::size_t dot = file.rfind('.');
  return dot != std::string_view::npos && dot != 0 && file.size() - dot <= 6 &&
         file.find(' ') == std::string_view::npos &&
         std::all_of(file.begin() + static_cast<std::ptrdiff_t>(dot) + 1, file.end(), is_alpha);
}

bool dotted_name(std::string_view text) {
  if (text.empty() || text.size() > kLongestName || !(is_alpha(text[0]) || text[0] == '_')) return false;
  bool parts = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' || c == ':') {
      if (i + 1 == text.size()) return false;
      if (c == ':' && text[i + 1] != ':' && text[i - 1] != ':') return false;
      parts = true;
    } else if (!is_alpha(c) && !is_digit(c) && c != '_' && c != '$' && c != '-' && c != '@') {
      return false;
    }
  }
  return parts;
}

bool plain_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alpha(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == ':' || c == '/' || c == '#' ||
           c == '$' || c == '@';
  });
}

bool exception_word(std::string_view name) {
  return name.ends_with("Exception") || name.ends_with("Error") || name.ends_with("Throwable");
}

std::size_t closing(std::string_view line, std::size_t at, char open, char close) {
  int depth = 0;
  const std::size_t end = std::min(line.size(), at + kLongestBracket);
  for (std::size_t i = at; i < end; ++i) {
    if (line[i] == open) ++depth;
    if (line[i] == close && --depth == 0) return i;
  }
  return std::string_view::npos;
}

}  // namespace rose::logs
