// Parses the order in which a schedule's events, faults and steps of the workload must happen: "created * cut * (closed
// | restarted) * healed".
//
// The operators are those of REDIT (run sequences): `a * b` puts all of a before all of b, `a | b` allows both orders,
// parentheses group. `*` binds tighter.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::schedule {

struct OrderedName {
  std::string name;
  std::size_t column = 0;           // in the text, from 1
  std::vector<std::string> before;  // the names that immediately precede it
};

// The names in the order of the text, each once. Returns ErrorKind::input with the column.
[[nodiscard]] Result<std::vector<OrderedName>> parse_order(std::string_view text);

}  // namespace rose::schedule
