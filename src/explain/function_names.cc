#include "explain/function_names.h"

#include <fmt/format.h>

#include "base/text.h"

namespace rose::explain {

std::string key_of(std::string function) {
  function = replaced(std::move(function), "(anonymous namespace)::", "");
  if (function.find("operator") != std::string::npos) return function;
  for (std::size_t at = function.find('('); at != std::string::npos; at = function.find('(', at + 1))
    if (at > 0 && function.compare(at, 2, "(*") != 0) return function.substr(0, at);
  return function;
}

bool is_base(std::string_view function) {
  return function == "main" || function.ends_with(".main") || function.ends_with("::main") ||
         function.ends_with(".<module>") || function.starts_with("_start");
}

std::string at_place(const schedule::Frame& frame) {
  const std::string file = frame.file.substr(frame.file.rfind('/') + 1);
  if (file.empty()) return frame.function;
  return frame.line > 0 ? fmt::format("{} ({}:{})", frame.function, file, frame.line)
                        : fmt::format("{} ({})", frame.function, file);
}

}  // namespace rose::explain
