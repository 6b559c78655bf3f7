// The files of knowledge, carried inside the program.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace rose::knowledge {

// Name and text of each.
[[nodiscard]] std::span<const std::pair<std::string_view, std::string_view>> files();

}  // namespace rose::knowledge
