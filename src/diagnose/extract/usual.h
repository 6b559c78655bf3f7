// Events that happen constantly without harm. Private to diagnose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/extract/facts.h"

namespace rose::diagnose {

// The first event of each incident; a new incident begins when the gap to the previous event exceeds a workload's
// duration. Sorted by time.
[[nodiscard]] std::vector<std::int64_t> incidents_of(std::vector<std::int64_t> times, std::int64_t longest_ns);
// In several incidents.
[[nodiscard]] bool all_the_time(std::vector<std::int64_t> times, std::int64_t longest_ns);

// Ends or pauses that happen constantly without harm become one candidate: the last one, which is nearest to the
// failure. `alike`: indexes of candidates of one kind, by time.
[[nodiscard]] std::vector<Candidate> fold_usual(std::vector<Candidate> candidates,
                                                const std::vector<std::vector<std::size_t>>& alike,
                                                std::string_view did, const Times& times, std::int64_t longest_ns);

}  // namespace rose::diagnose
