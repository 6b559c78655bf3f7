// Merges dumps of several nodes and hosts on the first dump's clock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trace/event.h"

namespace rose::trace {

struct MergeOptions {
  bool estimate_clocks = true;
  // How far a clock is ahead of the first dump's clock, by host, node or boot id. Overrides the estimate.
  std::vector<std::pair<std::string, std::int64_t>> ahead_ns;
};

// What was determined about a host's clock, and whether its events were shifted.
struct MergedClock {
  std::string host;  // its name, or the names of its nodes
  bool known = false;
  bool given = false;         // by MergeOptions
  std::int64_t ahead_ns = 0;  // how far it is ahead of the first dump's clock at the end
  std::int64_t error_ns = 0;
  std::size_t handshakes = 0;
  std::string text;  // one sentence; also in Meta::clock
};

// Merges traces: all events are sorted by time, and lost and suppressed counts are added. If a host's clock is known,
// its events and header times are converted to the first trace's clock. Dumps with the same boot id share a clock.
// Returns ErrorKind::usage if a host named in the options is in none of the dumps.
[[nodiscard]] Result<Trace> merge(const std::vector<Trace>& traces, const MergeOptions& options,
                                  std::vector<MergedClock>* clocks = nullptr);
// Merges with estimated clocks.
[[nodiscard]] Trace merge(const std::vector<Trace>& traces);

}  // namespace rose::trace
