// Identifiers of candidates, and which nodes they affect. Pure.
#pragma once

#include "config/config.h"
#include "diagnose/diagnose.h"

namespace rose::diagnose {

// Fills `id` and `nodes` of the plan's candidates. An id is derived from the fault itself, so that it is the same in
// every diagnosis of that evidence, whatever other candidates exist.
void identify(Plan& plan, const config::Config& config);

}  // namespace rose::diagnose
