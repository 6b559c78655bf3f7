// Stores the outcomes of a schedule's faults and of its order in one run as JSON.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "schedule/outcome.h"

namespace rose::schedule {

[[nodiscard]] Json outcomes_json(const std::vector<FaultOutcome>& outcomes);
// The inverse. Fields that older versions did not write stay empty.
[[nodiscard]] Result<std::vector<FaultOutcome>> outcomes_from(const Json& json);

// Stores the outcomes of the names in a schedule's order as JSON.
[[nodiscard]] Json order_json(const std::vector<OrderOutcome>& order);
[[nodiscard]] Result<std::vector<OrderOutcome>> order_from(const Json& json);

}  // namespace rose::schedule
