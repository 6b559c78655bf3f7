// Warnings, each with a remedy, of what will probably make runs useless. Issued before runs are made. Private to
// diagnose.
#pragma once

#include <string>
#include <vector>

#include "diagnose/move.h"

namespace rose::diagnose {

// Warnings from the evidence and the profile. `workload_ns`: how long the workload takes here; 0: as the profile says,
// if it does.
[[nodiscard]] std::vector<std::string> warnings_of_plan(const Inputs& inputs, const Plan& plan,
                                                        std::int64_t workload_ns);
// Warnings from what the test deployment was observed to do.
[[nodiscard]] std::vector<std::string> warnings_of_survey(const World& world);

}  // namespace rose::diagnose
