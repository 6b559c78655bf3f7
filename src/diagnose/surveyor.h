// The run that makes a survey: what the moves may want to know is asked for, counted in one fault-free run, and read.
// Private to diagnose.
#pragma once

#include <optional>

#include "diagnose/lab.h"
#include "diagnose/move.h"

namespace rose::diagnose {

// Makes a fault-free run that counts all that the moves may want to know; only calls if the deployment cannot count
// places.
[[nodiscard]] Result<void> make_survey(World& world, Lab& lab);
// The run that it asks for first, as it is without a run that was made before; nothing when nothing is asked.
[[nodiscard]] std::optional<schedule::Schedule> survey_schedule(const World& world);

}  // namespace rose::diagnose
