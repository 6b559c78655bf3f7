// Checks the names of container images.
#pragma once

#include <algorithm>
#include <string_view>

namespace rose::config {

// False for texts that no engine accepts as the name of an image, such as a text that begins with '-', which an engine
// would take for an option.
[[nodiscard]] inline bool is_image_name(std::string_view name) {
  return !name.empty() && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; });
}

}  // namespace rose::config
