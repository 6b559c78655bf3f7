// Events that happen all the time without harm. Private to diagnose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/extract/facts.h"

namespace rose::diagnose {

// The first of each incident: of what comes longer after the one before than a workload lasts. By time.
[[nodiscard]] std::vector<std::int64_t> incidents_of(std::vector<std::int64_t> times, std::int64_t longest_ns);
// In several incidents.
[[nodiscard]] bool all_the_time(std::vector<std::int64_t> times, std::int64_t longest_ns);

// Ends or pauses that happen all the time without harm become one candidate: the last one, which is the nearest to the
// failure. `alike`: which of the candidates are of one kind, by time.
[[nodiscard]] std::vector<Candidate> fold_usual(std::vector<Candidate> candidates,
                                                const std::vector<std::vector<std::size_t>>& alike,
                                                std::string_view did, const Times& times, std::int64_t longest_ns);

}  // namespace rose::diagnose
