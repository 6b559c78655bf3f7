#include "explain/function_names.h"

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/text.h"

namespace rose::explain {

std::string without_type_arguments(std::string function) {
  if (function.find("operator") != std::string::npos) return function;
  std::string out;
  int depth = 0;
  for (const char c : function) {
    const bool opens = c == '[' || c == '<',
               after_name = !out.empty() && (is_alpha(out.back()) || is_digit(out.back()) || out.back() == '_');
    if (opens && (depth > 0 || after_name)) ++depth;
    if (depth == 0) out += c;
    if (depth > 0 && (c == ']' || c == '>')) --depth;
  }
  return depth == 0 ? out : function;
}

std::string key_of(std::string function) {
  function = without_type_arguments(replaced(std::move(function), "(anonymous namespace)::", ""));
  if (function.find("operator") != std::string::npos) return function;
  for (std::size_t at = function.find('('); at != std::string::npos; at = function.find('(', at + 1))
    if (at > 0 && function.compare(at, 2, "(*") != 0) return function.substr(0, at);
  return function;
}

bool is_closure_in(std::string_view function, std::string_view outer) {
  constexpr std::string_view kJava = ".lambda$";
  if (const std::size_t at = function.find(kJava); at != std::string_view::npos) {
    const std::string_view rest = function.substr(at + kJava.size());
    return outer == fmt::format("{}.{}", function.substr(0, at), rest.substr(0, rest.find('$')));
  }
  if (outer.empty() || !function.starts_with(outer)) return false;
  const std::string_view rest = function.substr(outer.size());
  if (rest.starts_with("::"))
    return rest.find("{lambda") != std::string_view::npos || rest.find("{closure") != std::string_view::npos;
  const std::size_t last = rest.rfind(".func");
  return rest.starts_with('.') && last != std::string_view::npos && last + 5 < rest.size() && is_digit(rest[last + 5]);
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
