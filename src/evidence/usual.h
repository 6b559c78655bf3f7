// Recognises events that occur many times without harm.
#pragma once

#include <cstdint>
#include <vector>

namespace rose::evidence {

// Groups events into incidents: an event begins a new incident if the previous event happened more than `longest_ns`
// (the longest duration of a workload) before it. Returns the timestamps at which incidents began, ascending.
[[nodiscard]] std::vector<std::int64_t> incidents_of(std::vector<std::int64_t> times, std::int64_t longest_ns);
// True if there were at least kUsualFailures incidents.
[[nodiscard]] bool all_the_time(std::vector<std::int64_t> times, std::int64_t longest_ns);

}  // namespace rose::evidence
