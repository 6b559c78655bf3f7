// JSON as rose writes it: keys in the order in which they were put, and valid whatever the texts hold. The one place
// that knows the library; readers parse with Json::parse(text, nullptr, false), which throws nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rose {

using Json = nlohmann::ordered_json;

// Paths and logs may hold bytes that are not UTF-8: they are replaced.
[[nodiscard]] inline std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}
// One object in one line, its end included.
[[nodiscard]] inline std::string json_line(const Json& json) { return json_text(json) + "\n"; }

}  // namespace rose
