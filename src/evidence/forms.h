// Converts observations of production to the form in which a schedule holds them: globs instead of paths, and
// rounded times. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "schedule/schedule.h"

namespace rose::evidence {

// A glob that matches the same file in another directory layout: "/srv/n1/data/log.17" becomes "*/data/log.*". It
// contains the file's name and, unless `wide`, the folder above it if that is below the node's own folder. If the name
// alone would match too many files ("000017"), the glob always contains the folder. A system path is the same on every
// machine, so all of it is kept. "" if `path` is not a file's.
[[nodiscard]] std::string path_glob(std::string_view path, std::string_view node, bool wide = false);

// Observed times are rounded to multiples of this, in nanoseconds: smaller differences between machines are noise.
inline constexpr std::int64_t kTimeStep = 100'000'000;
[[nodiscard]] std::int64_t rounded(std::int64_t ns);

// A condition that is met `ns` after the start of the workload. The time is rounded down to a multiple of kTimeStep.
[[nodiscard]] schedule::Condition elapsed(std::int64_t ns);
// The conditions for a fault that follows the start of the workload, or the preceding faults, by `ns`: an elapsed time
// rounded to the nearest multiple of kTimeStep, or no condition if that is 0.
[[nodiscard]] std::vector<schedule::Condition> after_ns(std::int64_t ns);
// An upper bound of the workload's duration in nanoseconds: its timeout, or 60 s if there is no workload.
[[nodiscard]] std::int64_t longest_workload(const config::Config& config);

}  // namespace rose::evidence
