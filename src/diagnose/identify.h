// Determines the ids of candidates and the nodes that they affect. Pure.
#pragma once

#include "config/config.h"
#include "diagnose/diagnose.h"

namespace rose::diagnose {

// Sets `id` and `nodes` of the plan's candidates. An id depends only on the fault, not on other candidates, so the id
// is the same in every diagnosis of this evidence, and a user can pass it to --rule-out.
void identify(Plan& plan, const config::Config& config);

}  // namespace rose::diagnose
