// Layers that tools and web pages put before a program's line: `docker compose logs`, `kubectl logs`, stern, `aws
// logs`, grep, quotes in mails. Each function removes one layer from `line`. It returns false if the line does not have
// the layer; then the content of `out` is unspecified.
#pragma once

#include <string_view>

#include "logs/line/layer_fields.h"

namespace rose::logs {

// Reads "web_1  | text" of docker compose and "[pod/x/y] text" of kubectl.
[[nodiscard]] bool read_prefix(std::string_view line, LayerFields& out);

// Reads a timestamp with a date and a zone, a blank, and the program's line, as `kubectl logs --timestamps` and `docker
// logs -t` print them.
[[nodiscard]] bool read_timestamp(std::string_view line, LayerFields& out);

// Reads "pod container line", as stern without colours and some versions of `kubectl logs --prefix` print it.
[[nodiscard]] bool read_stern(std::string_view line, LayerFields& out);

// Reads "2024-06-05T12:00:00.123000+00:00 stream line", as `aws logs tail` prints it.
[[nodiscard]] bool read_stream(std::string_view line, LayerFields& out);

// Reads a node's name or address, a separator, and a line that begins with a timestamp or is a JSON object: "[n1]
// 12:03:04 ...", "n1 - 12:03:04 ...", "/tmp/n1.log:..." (printed by grep), "10.0.0.1: {...}" (printed by a command for
// many hosts).
[[nodiscard]] bool read_origin(std::string_view line, LayerFields& out);

// Reads the prefix that grep, zgrep and rg print if they search several files: "/var/log/x/server.log:". A line number
// may follow it.
[[nodiscard]] bool read_file_name(std::string_view line, LayerFields& out);

// Reads a line that is quoted in a mail or an issue: "> text".
[[nodiscard]] bool read_quote(std::string_view line, LayerFields& out);

}  // namespace rose::logs
