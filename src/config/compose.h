// Converts a Compose file to nodes, with Compose's semantics. Settings that have no effect in a run are reported; those
// that rose cannot carry out are refused with file and line. `rose init` uses it too, to write a first rose.toml.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/compose_words.h"
#include "config/config.h"

namespace rose::config {

struct ComposeNodes {
  std::vector<Node> nodes;  // the services that are started, in file order; with addresses if the file gives them
  std::string subnet;       // of the network with those addresses; "" if there is none
  std::vector<std::string> words;     // settings without effect, and why; reported on request
  std::vector<std::string> warnings;  // settings that rose handles differently than Compose
};

// `lookup` resolves variables such as "${TAG:-7}". Returns ErrorKind::input.
[[nodiscard]] Result<ComposeNodes> read_compose(std::string_view text, const std::filesystem::path& file,
                                                const compose::Lookup& lookup,
                                                const std::vector<std::filesystem::path>& further = {});
// Each file overrides the previous ones. Variables come from this process and from `.env` beside the first file.
[[nodiscard]] Result<ComposeNodes> read_compose_files(const std::vector<std::filesystem::path>& files);

}  // namespace rose::config
