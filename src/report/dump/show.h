// Views of a trace with one line per event. They only format; trace/ has lossless formats, summary.h has totals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text.h"
#include "base/units.h"
#include "trace/event.h"

namespace rose::report {

using Output = std::function<void(std::string_view)>;

struct ShowFilter {
  std::optional<std::string> node;
  std::set<trace::EventType> types;      // empty: all types
  std::optional<std::int64_t> since_ns;  // wall clock, inclusive
  std::optional<std::int64_t> until_ns;
};

// Parses "2.5s" (after the first event), "-10s" (before the last event), or nanoseconds of the wall clock. Messages
// contain `option`.
[[nodiscard]] Result<std::int64_t> parse_moment(std::string_view option, std::string_view text,
                                                const trace::Trace& trace);
// Parses a list of types: "scf,ps".
[[nodiscard]] Result<std::set<trace::EventType>> parse_types(std::string_view option, std::string_view text);
// Returns an error if the filter names an unknown node, or if its time span is empty.
[[nodiscard]] Result<void> check_filter(const ShowFilter& filter, const trace::Trace& trace);

[[nodiscard]] bool matches(const ShowFilter& filter, const trace::Trace& trace, const trace::Event& event);

// The event on one line, without time, node and process: "openat ENOENT /var/lib/x/snapshot.0".
[[nodiscard]] std::string describe(const trace::TraceBase& trace, const trace::Event& event);

// Each of these functions calls `out` with complete lines.
void show_text(const trace::Trace& trace, const ShowFilter& filter, const Output& out);
// Lossless if the filter leaves nothing out.
void show_jsonl(const trace::Trace& trace, const ShowFilter& filter, const Output& out);

}  // namespace rose::report
