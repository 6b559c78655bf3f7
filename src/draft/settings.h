// Configuration files that a command line names: the addresses and paths in them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draft/addresses.h"
#include "draft/facts.h"

namespace rose::draft {

// Text of up to 256 KiB; nothing else is taken for a configuration file.
inline constexpr std::size_t kMostSettingsBytes = std::size_t{256} << 10;
[[nodiscard]] bool is_settings(std::string_view path, std::string_view text);

[[nodiscard]] Settings read_settings(std::string path, std::string_view text, const std::vector<std::string>& names);

// What has to be put in the place of what for a run, as expressions of `sed -E`; placeholders included.
struct Patch {
  std::vector<std::string> expressions;
  bool own = false;  // an address that the node itself listens at is among them
};
[[nodiscard]] Patch patch_settings(const Settings& settings, std::size_t self, const AddressBook& book,
                                   Rewritten& result);

}  // namespace rose::draft
