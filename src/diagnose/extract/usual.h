// Recognises events that occur many times without harm. Private to diagnose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/extract/facts.h"

namespace rose::diagnose {

// The timestamps at which incidents began, ascending. A new incident begins if the previous event is further away than
// the longest duration of a workload.
[[nodiscard]] std::vector<std::int64_t> incidents_of(std::vector<std::int64_t> times, std::int64_t longest_ns);
// True if there were at least kUsualFailures incidents.
[[nodiscard]] bool all_the_time(std::vector<std::int64_t> times, std::int64_t longest_ns);

// Merges ends or pauses that occur many times without harm (kUsualTimes) into one candidate, the last one, which is
// closest to the failure. `alike`: for each kind, the indexes of its candidates by time. `did`: for people, "ended" or
// "stood still".
[[nodiscard]] std::vector<Candidate> fold_usual(std::vector<Candidate> candidates,
                                                const std::vector<std::vector<std::size_t>>& alike,
                                                std::string_view did, const Times& times, std::int64_t longest_ns);

}  // namespace rose::diagnose
