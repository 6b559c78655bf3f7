// The record form of what became of a schedule's faults and of its order in one run: a JSON array that people and machines read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"
#include "schedule/outcome.h"

namespace rose::schedule {

[[nodiscard]] nlohmann::ordered_json outcomes_json(const std::vector<FaultOutcome>& outcomes);
// Reads it back; fields that an older rose did not write stay empty.
[[nodiscard]] Result<std::vector<FaultOutcome>> outcomes_from(const nlohmann::ordered_json& json);

// The same for the names of a schedule's order.
[[nodiscard]] nlohmann::ordered_json order_json(const std::vector<OrderOutcome>& order);
[[nodiscard]] Result<std::vector<OrderOutcome>> order_from(const nlohmann::ordered_json& json);

}  // namespace rose::schedule
