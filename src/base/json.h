// JSON as rose writes it: keys keep their insertion order, and the output is valid for any input bytes. Only this
// header includes the library. Readers parse with Json::parse(text, nullptr, false), which does not throw.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rose {

using Json = nlohmann::ordered_json;

// Paths and log lines may contain bytes that are not UTF-8. They are replaced, because JSON must be UTF-8.
[[nodiscard]] inline std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}
// One object as one line, including the newline.
[[nodiscard]] inline std::string json_line(const Json& json) { return json_text(json) + "\n"; }

}  // namespace rose
