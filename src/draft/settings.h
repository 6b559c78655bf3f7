// Finds addresses and paths in configuration files that are named on a command line. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draft/addresses.h"
#include "draft/facts.h"

namespace rose::draft {

// Only text of up to 256 KiB is considered a configuration file.
inline constexpr std::size_t kMostSettingsBytes = std::size_t{256} << 10;
[[nodiscard]] bool is_settings(std::string_view path, std::string_view text);

[[nodiscard]] Settings read_settings(std::string path, std::string_view text, const std::vector<std::string>& names);

// The substitutions that a run makes in a copy of the file: expressions for `sed -E`, with placeholders.
struct Patch {
  std::vector<std::string> expressions;
  bool own = false;  // one of the replaced addresses is an address at which the node itself listens
};
[[nodiscard]] Patch patch_settings(const Settings& settings, std::size_t self, const AddressBook& book,
                                   Rewritten& result);

}  // namespace rose::draft
