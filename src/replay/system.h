// Identifies the system to which a record belongs. Verdicts remain valid as long as the system is the same.
#pragma once

#include <string>

#include "config/config.h"

namespace rose::replay {

// The system as JSON: the deployment, its nodes, workload and oracle, and the seed of the search.
[[nodiscard]] std::string system_json(const config::Config& config);
// The first part in which two systems differ ("workload"). The seed is ignored. "" if they do not differ.
[[nodiscard]] std::string system_difference(const std::string& recorded, const std::string& now);

}  // namespace rose::replay
