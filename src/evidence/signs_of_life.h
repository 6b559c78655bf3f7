// Limits how long the end of a node explains failures.
#pragma once

#include <vector>

#include "evidence/causes.h"
#include "evidence/facts.h"

namespace rose::evidence {

// If the dump shows no start after the end of a node (for example, because another tool made the dump), the end
// explains failures only until the next sign that the node was running. A node that ends again, or whose packets
// arrive, must have been started in between.
[[nodiscard]] std::vector<Cause> end_by_signs_of_life(std::vector<Cause> causes, const Given& given,
                                                      const Facts& facts);

}  // namespace rose::evidence
