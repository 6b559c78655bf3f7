// JSON Lines: the lossless text form of a dump.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/event.h"

namespace rose::trace {

// Writes the meta line, then one line for each event. `out` receives complete lines, including the newline.
void write_jsonl(const Trace& trace, const std::function<void(std::string_view)>& out);
[[nodiscard]] std::string event_to_json(const Trace& trace, const Event& event);
[[nodiscard]] std::string meta_to_json(const Meta& meta);

// Appends `text` in quotes and escaped. Bytes that are not UTF-8 become lone surrogates, \udc80 to \udcff, as with
// Python's surrogateescape. parse_jsonl turns these into the same bytes again.
void append_json_string(std::string& out, std::string_view text);

// Fields may be absent or null. Unknown fields are ignored, with one warning for each file. Unknown event types, system
// calls and errno names, and values of a wrong type, are refused, and the message contains file:line. The warning is
// stored in `warning` if that is given, and otherwise logged.
[[nodiscard]] Result<Trace> parse_jsonl(std::string_view text, std::string_view name, std::string* warning = nullptr);
[[nodiscard]] Result<Trace> read_jsonl(const std::filesystem::path& path);

}  // namespace rose::trace
