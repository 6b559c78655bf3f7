// Layers that the machine adds to a program's line: syslog, the journal, container runtimes. Each function removes one
// layer from `line`. It returns false if the line does not have the layer; then the content of `out` is unspecified.
#pragma once

#include <string>
#include <string_view>

#include "logs/line/json_line.h"
#include "logs/line/layer_fields.h"

namespace rose::logs {

// Reads "Nov 22 18:24:21 node1 haproxy[964]: text". A priority ("<34>") may precede, and the timestamp may be in ISO
// format.
[[nodiscard]] bool read_syslog(std::string_view line, LayerFields& out);

// Reads "<165>1 2026-11-22T18:24:21.218265+00:00 host app 964 ID47 [structured data] text".
[[nodiscard]] bool read_syslog_5424(std::string_view line, LayerFields& out);

// Reads "2026-11-22T18:24:21.218265123Z stdout F text".
[[nodiscard]] bool read_cri(std::string_view line, LayerFields& out);

// Reads the log files of docker: {"log":"text\n","stream":"stdout","time":"2026-11-22T18:24:21.218265123Z"}.
[[nodiscard]] bool read_docker(std::string_view line, JsonLine& json, LayerFields& out);

// Reads an entry as `journalctl -o json` prints it. If the text of the entry is a list of bytes, `text_buffer` receives
// the decoded text.
[[nodiscard]] bool read_journal_json(std::string_view line, JsonLine& json, std::string& text_buffer, LayerFields& out);

}  // namespace rose::logs
