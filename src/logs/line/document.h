// Exports that are JSON documents rather than lines: arrays of records (gcloud, jq -s, Docker's and Kibana's), records
// below a key (CloudWatch's events, hits of a search, Loki's streams, OTLP's resourceLogs), objects printed over many
// lines. They become one object a line, with the time, the severity, what names the origin, and the program's line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rose::logs {

inline constexpr std::size_t kLargestDocument = std::size_t{64} << 20;  // it is held in memory

// Whether a file that begins so is such a document.
[[nodiscard]] bool begins_document(std::string_view head);
// One line for each record, in the document's order; nothing: it is no JSON, or holds no record.
[[nodiscard]] std::optional<std::string> lines_of_document(std::string_view whole);

}  // namespace rose::logs
