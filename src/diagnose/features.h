// What the rank of a candidate can rest on, as named numbers: for people who ask why, and for fits of other weights on
// recorded cases. And what a candidate is called, and which nodes it touches.
#pragma once

#include "config/config.h"
#include "diagnose/diagnose.h"

namespace rose::diagnose {

// Fills `id`, `nodes` and `features` of the plan's candidates. An id is made from what the fault is, so that it is the
// same in every diagnosis of that evidence, whatever other candidates there are.
void describe(Plan& plan, const config::Config& config);

}  // namespace rose::diagnose
