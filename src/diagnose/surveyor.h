// Makes the survey: collects the questions of all moves, makes a fault-free run that counts, and reads the answers.
// Private to diagnose.
#pragma once

#include <optional>

#include "diagnose/lab.h"
#include "diagnose/move.h"

namespace rose::diagnose {

// Makes the run and stores the answers in `world.survey`. If the deployment cannot count places inside functions, makes
// another run that counts only calls.
[[nodiscard]] Result<void> make_survey(World& world, Lab& lab);
// The schedule of the first run that make_survey() requests; nothing if there are no questions.
[[nodiscard]] std::optional<schedule::Schedule> survey_schedule(const World& world);

}  // namespace rose::diagnose
