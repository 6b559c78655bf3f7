// What failed, how often, where and when, instead of single events; and, with a profile, what of it is not normal.
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

// Against a profile: absent from it; in it but rarer there; as usual there.
enum class Normal { fresh, more, usual };
[[nodiscard]] std::string_view normal_name(Normal normal);  // "new", "more", "usual"

// Equal events together; what rose injected stands apart from what happened.
struct SummaryRow {
  const trace::Event* example = nullptr;  // of the trace
  std::uint64_t count = 0;
  std::uint64_t alike = 0;  // of a failed call: how often that call failed so in all, on whatever path
  std::int64_t first_ns = 0, last_ns = 0;
  std::int32_t longest_ms = 0;  // of what has a duration
  std::optional<Normal> normal;
};

struct Summary {
  // New ones first; then what tells most of a failure: ends and pauses that nobody planned, errors of a disk or
  // resource, silences, other failed calls, what also happens in peace. Of failed calls the rare ones first, of the
  // rest the frequent ones.
  std::vector<SummaryRow> rows;
  std::map<trace::EventType, std::uint64_t> totals;
  std::uint64_t collapsed = 0;  // events that stand in counted records
  std::map<Normal, std::uint64_t> kinds;
};

// The trace must outlive it. `profile` may be nullptr.
[[nodiscard]] Summary summarise(const trace::Trace& trace, const ShowFilter& filter, const profile::Profile* profile);

// At most the first thousand rows, and how many more there are: a dump may hold a million kinds. JSON has them all.
void show_summary(const trace::Trace& trace, const ShowFilter& filter, const profile::Profile* profile,
                  const Output& out);
inline void show_summary(const trace::Trace& trace, const ShowFilter& filter, const Output& out) {
  show_summary(trace, filter, nullptr, out);
}
// One JSON object, in one line.
void show_summary_json(const trace::Trace& trace, const ShowFilter& filter, const profile::Profile* profile,
                       const Output& out);

}  // namespace rose::report
