// One model ranks the candidates: a conditional logit over their features. Its weights are fitted on recorded cases by
// test/eval/fit, which writes fitted.def. Pure. Private to diagnose.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diagnose/diagnose.h"

namespace rose::diagnose {

// Sets `features`, `weight` and `rank`; the order stays. `written`: when the dumps end; unknown if there are only logs.
// `without`: rules that are left out (parts()).
[[nodiscard]] std::vector<Candidate> weighed(std::vector<Candidate> candidates, std::optional<std::int64_t> written,
                                             const std::set<std::string>& without);

}  // namespace rose::diagnose
