// Undoing what killed rose processes left, by lock file and by name.
#pragma once

#include <functional>
#include <string_view>

#include "deploy/deployment.h"

namespace rose::deploy {

// heal(), limited to the ids that are chosen: tests must not touch what others left.
[[nodiscard]] Result<Healed> heal_chosen(const std::function<bool(std::string_view id)>& chosen);

}  // namespace rose::deploy
