// The named numbers on which the rank of a candidate is based: for users who ask why, and for fitting other weights on
// recorded cases. Also the ids of candidates, and which nodes they affect.
#pragma once

#include "config/config.h"
#include "diagnose/diagnose.h"

namespace rose::diagnose {

// Fills `id`, `nodes` and `features` of the plan's candidates. An id is derived from the fault itself, so that it is
// the same in every diagnosis of that evidence, whatever other candidates exist.
void describe(Plan& plan, const config::Config& config);

}  // namespace rose::diagnose
