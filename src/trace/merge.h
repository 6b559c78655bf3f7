// Dumps of several nodes and hosts as one, on the first one's time line.
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
  // By host, node or boot id: how far its clock is ahead of the first dump's. Goes before what is estimated.
  std::vector<std::pair<std::string, std::int64_t>> ahead_ns;
};

// What was found of a host's clock and done with its events.
struct MergedClock {
  std::string host;  // its name, or its nodes'
  bool known = false;
  bool given = false;         // by MergeOptions
  std::int64_t ahead_ns = 0;  // of the first dump's clock, at the end
  std::int64_t error_ns = 0;
  std::size_t handshakes = 0;
  std::string text;  // a sentence; also in Meta::clock
};

// One trace with the events of all, by timestamp; lost and suppressed add up. Events, and times of the header, of hosts
// whose clock is known are moved onto the first trace's time line. Dumps with one boot id share a clock.
// ErrorKind::usage when a host of the options is in none of the dumps.
[[nodiscard]] Result<Trace> merge(const std::vector<Trace>& traces, const MergeOptions& options,
                                  std::vector<MergedClock>* clocks = nullptr);
// With the clocks estimated.
[[nodiscard]] Trace merge(const std::vector<Trace>& traces);

}  // namespace rose::trace
