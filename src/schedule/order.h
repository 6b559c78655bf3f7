// Parses the order in which a schedule's events, faults and steps of the workload must happen, such as "created * cut *
// (closed | restarted) * healed".
//
// The operators are those of REDIT (run sequences). `a * b` puts all of a before all of b, `a | b` allows both orders,
// and parentheses group. `*` binds tighter than `|`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::schedule {

struct OrderedName {
  std::string name;
  std::size_t column = 0;           // column of the name in the text, from 1
  std::vector<std::string> before;  // the names that immediately precede this one
};

// The names in the order of the text, each only once. Fails with ErrorKind::input, and the message contains the column.
[[nodiscard]] Result<std::vector<OrderedName>> parse_order(std::string_view text);

}  // namespace rose::schedule
