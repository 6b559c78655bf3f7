// Makes a survey in one fault-free run: collects the questions of all moves, counts, and reads the answers. Private to
// diagnose.
#pragma once

#include <optional>

#include "diagnose/lab.h"
#include "diagnose/move.h"

namespace rose::diagnose {

// Makes a fault-free run that counts everything that the moves may want to know; only calls if the deployment cannot
// count other places.
[[nodiscard]] Result<void> make_survey(World& world, Lab& lab);
// The run that it requests first, without knowledge from earlier runs; nothing if there are no questions.
[[nodiscard]] std::optional<schedule::Schedule> survey_schedule(const World& world);

}  // namespace rose::diagnose
