// Production's observations in the form of a schedule: globs instead of paths, times rounded to hide differences
// between machines. Pure. Private to diagnose.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "schedule/schedule.h"

namespace rose::diagnose {

// A glob that matches the same file in another directory layout: the last components of `path`, with numbers as
// patterns; as many components as lie below the node's own folder, at most two. "" if it is not a file.
[[nodiscard]] std::string path_glob(std::string_view path, std::string_view node, bool wide = false);

// Observed times are rounded to this: smaller differences are noise between machines.
inline constexpr std::int64_t kTimeStep = 100'000'000;
[[nodiscard]] std::int64_t rounded(std::int64_t ns);

// A condition that is met at this time after the workload began.
[[nodiscard]] schedule::Condition elapsed(std::int64_t ns);
// The time since the workload began, or since the faults before it began; empty if the time is not meaningful.
[[nodiscard]] std::vector<schedule::Condition> after_ns(std::int64_t ns);
// An upper bound of the workload's duration.
[[nodiscard]] std::int64_t longest_workload(const config::Config& config);

}  // namespace rose::diagnose
