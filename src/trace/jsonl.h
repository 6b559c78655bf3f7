// JSON Lines: the lossless text form of a dump.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/event.h"

namespace rose::trace {

// Writes the meta line, then one line per event. `out` receives complete lines including the newline.
void write_jsonl(const Trace& trace, const std::function<void(std::string_view)>& out);
[[nodiscard]] std::string event_to_json(const Trace& trace, const Event& event);
[[nodiscard]] std::string meta_to_json(const Meta& meta);

// Appends `text` quoted and escaped. Bytes that are not UTF-8 become lone surrogates, \udc80 to \udcff, as with
// Python's surrogateescape; parse_jsonl turns them back into the same bytes.
void append_json_string(std::string& out, std::string_view text);

// Absent and null fields are accepted. Unknown fields are ignored with one warning per file. Unknown event types,
// syscalls, errno names and wrong types are refused with file:line. The warning is logged, or stored in `warning` if
// that is given.
[[nodiscard]] Result<Trace> parse_jsonl(std::string_view text, std::string_view name, std::string* warning = nullptr);
[[nodiscard]] Result<Trace> read_jsonl(const std::filesystem::path& path);

}  // namespace rose::trace
