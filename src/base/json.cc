#include "base/json.h"

#include <string>

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace rose {

Json parse_json(std::string_view text, const Json::parser_callback_t& keep) { return Json::parse(text, keep, false); }

Json parse_json_or_throw(std::string_view text, const Json::parser_callback_t& keep) { return Json::parse(text, keep); }

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_line(const Json& json) { return json_text(json) + "\n"; }

}  // namespace rose
