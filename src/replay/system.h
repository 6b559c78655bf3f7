// What a record's runs ran: as long as it is the same, their verdicts hold.
#pragma once

#include <string>

#include "config/config.h"

namespace rose::replay {

// JSON: the deployment, its nodes, workload and oracle, and the seed of the search.
[[nodiscard]] std::string system_json(const config::Config& config);
// The first part in which two of them differ ("workload"), the seed apart; "" when they are the same system.
[[nodiscard]] std::string system_difference(const std::string& recorded, const std::string& now);

}  // namespace rose::replay
