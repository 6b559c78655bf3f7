// Stores as JSON what happened to a schedule's faults, and to its order, in one run.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "schedule/outcome.h"

namespace rose::schedule {

[[nodiscard]] Json outcomes_json(const std::vector<FaultOutcome>& outcomes);
// The inverse function. Fields that older versions did not write stay empty.
[[nodiscard]] Result<std::vector<FaultOutcome>> outcomes_from(const Json& json);

// Stores as JSON what happened to the names in a schedule's order.
[[nodiscard]] Json order_json(const std::vector<OrderOutcome>& order);
[[nodiscard]] Result<std::vector<OrderOutcome>> order_from(const Json& json);

}  // namespace rose::schedule
