// Merges the dumps of several nodes and hosts, with all times by the first dump's clock.
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
  // How far a clock is ahead of the first dump's clock. The clock is given by a host, a node or a boot id. This takes
  // precedence over the estimate.
  std::vector<std::pair<std::string, std::int64_t>> ahead_ns;
};

// What was found out about a host's clock, and whether the host's events were shifted.
struct MergedClock {
  std::string host;  // name of the host, or the names of its nodes
  bool known = false;
  bool given = false;         // MergeOptions contains the offset
  std::int64_t ahead_ns = 0;  // at the host's last event: how far the clock is ahead of the first dump's clock
  std::int64_t error_ns = 0;
  std::size_t handshakes = 0;
  std::string text;  // one sentence, which is also in Meta::clock
};

// Merges traces: all events are sorted by time, and the numbers of lost and suppressed events are added. If a host's
// clock is known, the times of its events and headers are converted to the first trace's clock. Dumps with the same
// boot id have the same clock. Fails with ErrorKind::usage if none of the dumps is from a host that the options name.
[[nodiscard]] Result<Trace> merge(const std::vector<Trace>& traces, const MergeOptions& options,
                                  std::vector<MergedClock>* clocks = nullptr);
// Merges traces, and estimates their clocks.
[[nodiscard]] Trace merge(const std::vector<Trace>& traces);

}  // namespace rose::trace
