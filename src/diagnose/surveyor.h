// The run that makes a survey: what the moves may want to know is asked for, counted in one fault-free run, and read. Inside this room.
#pragma once

#include "diagnose/lab.h"
#include "diagnose/move.h"

namespace rose::diagnose {

// One fault-free run in which all that the moves may want to know is counted; where the deployment cannot count places, calls alone.
[[nodiscard]] Result<void> make_survey(World& world, Lab& lab);

}  // namespace rose::diagnose
