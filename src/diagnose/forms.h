// How a schedule says what production showed: globs in the place of paths, times without the noise between machines.
// Pure. Private to diagnose.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "schedule/schedule.h"

namespace rose::diagnose {

// A glob that finds the same file in another directory layout: the last components of `path`, numbers
// as patterns; as many of them as lie below the node's own folder, at most two. "" for what is no file.
[[nodiscard]] std::string path_glob(std::string_view path, std::string_view node, bool wide = false);

// Observed times are rounded to this: finer is noise between machines.
inline constexpr std::int64_t kTimeStep = 100'000'000;
[[nodiscard]] std::int64_t rounded(std::int64_t ns);

// A condition that is met at this time after the workload began.
[[nodiscard]] schedule::Condition elapsed(std::int64_t ns);
// Since the workload began, or since the faults that it comes after began; none where that is no time.
[[nodiscard]] std::vector<schedule::Condition> after_ns(std::int64_t ns);
// The workload surely does not last longer.
[[nodiscard]] std::int64_t longest_workload(const config::Config& config);

}  // namespace rose::diagnose
