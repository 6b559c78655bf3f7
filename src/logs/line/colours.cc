#include "logs/line/colours.h"

namespace rose::logs {

std::string_view without_colours(std::string_view line, std::string& buffer) {
  if (line.find('\x1b') == std::string_view::npos) return line;
  buffer.clear();
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      buffer += line[i];
      continue;
    }
    if (i + 1 >= line.size()) break;
    if (line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < 0x40 || line[i] > 0x7e)) ++i;
    } else if (line[i + 1] == ']') {
      i += 2;
      while (i < line.size() && line[i] != '\a' && line[i] != '\x1b') ++i;
      if (i < line.size() && line[i] == '\x1b') ++i;
    } else {
      ++i;
    }
  }
  return buffer;
}

}  // namespace rose::logs
