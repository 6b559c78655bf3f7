// Turns exports that are JSON documents into lines: arrays of records (gcloud, jq -s, Docker's and Kibana's), records
// under a key (CloudWatch's events, hits of a search, Loki's streams, OTLP's resourceLogs), and objects printed over
// several lines. The result has one JSON object per line, with the time, the severity, the labels that identify its
// origin, and the line that the program wrote.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rose::logs {

// The largest document that is read, in bytes. There is a limit because the document is held in memory.
inline constexpr std::size_t kLargestDocument = std::size_t{64} << 20;

// True if a file that begins with `head` is such a document.
[[nodiscard]] bool begins_document(std::string_view head);
// Returns one line for each record, in the order of the document; nothing if the text is not JSON or contains no
// record.
[[nodiscard]] std::optional<std::string> lines_of_document(std::string_view whole);

}  // namespace rose::logs
