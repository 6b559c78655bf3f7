#include "base/json_shape.h"

#include <vector>

namespace rose {

bool json_within(std::string_view text, int depth, std::size_t members) {
  std::vector<std::size_t> names;  // for each open array or object: number of its members so far; 0 for an array
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        for (++i; i < text.size() && text[i] != '"'; ++i)
          if (text[i] == '\\') ++i;
        break;
      case '[':
      case '{':
        if (names.size() >= static_cast<std::size_t>(depth)) return false;
        names.push_back(0);
        break;
      case ']':
      case '}':
        if (!names.empty()) names.pop_back();
        break;
      case ':':
        if (!names.empty() && ++names.back() > members) return false;
        break;
      default: break;
    }
  }
  return true;
}

}  // namespace rose
