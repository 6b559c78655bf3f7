// Warnings of problems that will probably make runs useless, each with a remedy. Issued before the search. Private to
// diagnose.
#pragma once

#include <string>
#include <vector>

#include "diagnose/move.h"

namespace rose::diagnose {

// Warnings that follow from the evidence and the profile. `workload_ns`: duration of the workload in the test
// deployment; 0: take it from the profile.
[[nodiscard]] std::vector<std::string> warnings_of_plan(const Inputs& inputs, const Plan& plan,
                                                        std::int64_t workload_ns);
// Warnings that follow from the survey.
[[nodiscard]] std::vector<std::string> warnings_of_survey(const World& world);

}  // namespace rose::diagnose
