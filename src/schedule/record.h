// The record form of what became of a schedule's faults in one run: a JSON array that people and machines read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/outcome.h"

namespace rose::schedule {

[[nodiscard]] std::string outcomes_json(const std::vector<FaultOutcome>& outcomes);
// Reads it back; fields that an older rose did not write stay empty.
[[nodiscard]] Result<std::vector<FaultOutcome>> parse_outcomes(std::string_view json);

}  // namespace rose::schedule
