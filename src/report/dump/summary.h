// Summarises a trace: what failed, how often, where and when. With a profile, also what of this is not normal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "report/dump/show.h"
#include "trace/event.h"

namespace rose::report {

// Compares the frequency of an event with a profile. fresh: the profile does not contain the event; more: the event is
// more frequent than in the profile; usual: it is not.
enum class Normal { fresh, more, usual };
[[nodiscard]] std::string_view normal_name(Normal normal);  // "new", "more", "usual"

// A group of equal events. Injected results are in separate groups.
struct SummaryRow {
  const trace::Event* example = nullptr;  // one of these events in the trace
  std::uint64_t count = 0;
  std::uint64_t alike = 0;  // for a failed call: how often the call failed with this error on any path
  std::int64_t first_ns = 0, last_ns = 0;
  std::int32_t longest_ms = 0;  // for events with a duration: the longest duration
  std::string peers;  // if several peers differ only in a client's port, the pattern of their names: "10.77.0.2:*"
  std::optional<Normal> normal;
};

struct Summary {
  // New kinds come first. Then the order is by relevance: unplanned ends and pauses, errors of a disk or another
  // resource, silences, other failed calls, and what also occurs in normal operation. Within these, rare failed calls
  // come first, and other kinds are sorted by frequency.
  std::vector<SummaryRow> rows;
  std::map<trace::EventType, std::uint64_t> totals;
  std::uint64_t collapsed = 0;  // number of events without a record of their own: the `count` of an equal event
                                // includes them
  std::map<Normal, std::uint64_t> kinds;
};

// The trace must outlive the result. `profile` may be nullptr.
[[nodiscard]] Summary summarise(const trace::Trace& trace, const ShowFilter& filter, const profile::Profile* profile);

// Prints at most a thousand rows, and the number of the others, because a dump may contain a million kinds. The JSON
// form contains all.
void show_summary(const trace::Trace& trace, const ShowFilter& filter, const profile::Profile* profile,
                  const Output& out);
inline void show_summary(const trace::Trace& trace, const ShowFilter& filter, const Output& out) {
  show_summary(trace, filter, nullptr, out);
}
// Prints one JSON object on one line.
void show_summary_json(const trace::Trace& trace, const ShowFilter& filter, const profile::Profile* profile,
                       const Output& out);

}  // namespace rose::report
