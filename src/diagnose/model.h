// The model that ranks the candidates: a conditional logit over their features. test/eval/fit fits its weights to
// recorded cases and writes fitted.def. Pure. Private to diagnose.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

// Sets `features`, `weight` and `rank` of the candidates and keeps their order. `written`: the time at which the dumps
// end; nothing if there are only logs. `without`: names of parts() that are left out.
[[nodiscard]] std::vector<Candidate> weighed(std::vector<Candidate> candidates, std::optional<std::int64_t> written,
                                             const std::set<std::string>& without);

}  // namespace rose::diagnose
