// Lines that consist of named fields: JSON objects, "key=value", attributes of an XML element.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "logs/line/form.h"
#include "logs/line/json_line.h"

namespace rose::logs {

// Converts fields to a message. Time, level, logger and thread are recognised by their keys. The text consists of the
// message, the errors and other fields as "key=value", and stack traces on separate lines.
// Returns false if there is neither a time nor a level. `text` and `nested` are buffers for `parts`.
[[nodiscard]] bool read_fields(const std::vector<JsonMember>& members, Parts& parts, std::string& text,
                               std::string& nested);

// Parses "ts=2026-11-22T18:14:15.704Z caller=main.go:513 level=info msg="No time" duration=15d". Returns false if the
// line has another form.
[[nodiscard]] bool parse_logfmt(std::string_view line, std::vector<JsonMember>& members, std::string& buffer);

// The attributes of an XML element without content. FoundationDB writes its messages in this form: <Event Severity="40"
// Time="..." Type="..." />.
[[nodiscard]] std::string_view attributes_of(std::string_view line);

}  // namespace rose::logs
