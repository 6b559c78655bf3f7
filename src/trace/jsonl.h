// JSON Lines, the lossless text form of a dump.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/event.h"

namespace rose::trace {

// The meta line, then one line an event; `out` is called with whole lines, newline included.
void write_jsonl(const Trace& trace, const std::function<void(std::string_view)>& out);
[[nodiscard]] std::string event_to_json(const Trace& trace, const Event& event);
[[nodiscard]] std::string meta_to_json(const Meta& meta);

// Appends `text` quoted and escaped. Bytes that are not UTF-8 become lone surrogates, \udc80 to \udcff,
// as Python's surrogateescape does; parse_jsonl turns them back into the same bytes.
void append_json_string(std::string& out, std::string_view text);

// Absent and null fields are accepted, unknown fields left out with one warning for the file,
// unknown event types, syscalls, errno names and wrong types refused with file:line. The warning is logged, or
// left in `warning` where that is given.
[[nodiscard]] Result<Trace> parse_jsonl(std::string_view text, std::string_view name, std::string* warning = nullptr);
[[nodiscard]] Result<Trace> read_jsonl(const std::filesystem::path& path);

}  // namespace rose::trace
