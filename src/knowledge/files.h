// The data files of this folder, embedded into the program.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace rose::knowledge {

// Name and text of each file that has patterns for messages.
[[nodiscard]] std::span<const std::pair<std::string_view, std::string_view>> files();
// The text of verbs.toml.
[[nodiscard]] std::string_view verbs_file();

}  // namespace rose::knowledge
