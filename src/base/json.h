// JSON as rose writes it: keys keep their insertion order, and the output is valid for any input bytes. Only this
// header includes the JSON library, and only json.cc compiles the library's parser and serializer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rose {

using Json = nlohmann::ordered_json;

}  // namespace rose

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // compiled once, in json.cc

namespace rose {

// Returns a value for which is_discarded() is true if the text is not JSON. `keep` is the library's callback, which
// decides which values are kept.
[[nodiscard]] Json parse_json(std::string_view text, const Json::parser_callback_t& keep = nullptr);
// Throws Json::parse_error with the position if the text is not JSON.
[[nodiscard]] Json parse_json_or_throw(std::string_view text, const Json::parser_callback_t& keep = nullptr);

// Paths and log lines may contain bytes that are not UTF-8. They are replaced, because JSON must be UTF-8.
[[nodiscard]] std::string json_text(const Json& json, int indent = -1);
// One object as one line, including the newline.
[[nodiscard]] std::string json_line(const Json& json);

}  // namespace rose
