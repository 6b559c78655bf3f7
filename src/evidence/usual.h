// Recognises events that occur many times without harm.
#pragma once

#include <cstdint>
#include <vector>

namespace rose::evidence {

// The timestamps at which incidents began, ascending. A new incident begins if the previous event is further away than
// the longest duration of a workload.
[[nodiscard]] std::vector<std::int64_t> incidents_of(std::vector<std::int64_t> times, std::int64_t longest_ns);
// True if there were at least kUsualFailures incidents.
[[nodiscard]] bool all_the_time(std::vector<std::int64_t> times, std::int64_t longest_ns);

}  // namespace rose::evidence
