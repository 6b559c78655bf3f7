// Views of a trace for people: one line an event. Reads traces, decides nothing; the lossless forms are in trace/,
// what failed how often is in summary.h.
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
  std::set<trace::EventType> types;      // empty: all
  std::optional<std::int64_t> since_ns;  // wall clock, both inclusive
  std::optional<std::int64_t> until_ns;
};

// "2.5s" after the trace's first event, "-10s" before its last, or wall-clock nanoseconds. `option` stands in
// messages.
[[nodiscard]] Result<std::int64_t> parse_moment(std::string_view option, std::string_view text,
                                                const trace::Trace& trace);
// "scf,ps"
[[nodiscard]] Result<std::set<trace::EventType>> parse_types(std::string_view option, std::string_view text);
// Fails when the filter asks for a node that the trace does not know, or for a time span that is none.
[[nodiscard]] Result<void> check_filter(const ShowFilter& filter, const trace::Trace& trace);

[[nodiscard]] bool matches(const ShowFilter& filter, const trace::Trace& trace, const trace::Event& event);

// "openat ENOENT /var/lib/x/snapshot.0", without time, node and process; one line.
[[nodiscard]] std::string describe(const trace::Trace& trace, const trace::Event& event);

// Each calls `out` with whole lines.
void show_text(const trace::Trace& trace, const ShowFilter& filter, const Output& out);
// Lossless when nothing is filtered out.
void show_jsonl(const trace::Trace& trace, const ShowFilter& filter, const Output& out);

}  // namespace rose::report
