// A Compose file as nodes: what it says of its services is taken as Compose means it; what has no effect in a run is
// told, and what rose cannot do is refused, with file and line. `rose init` reads such files too, to draft a rose.toml
// from.
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
  std::vector<Node> nodes;  // the services that are started, in the file's order; addresses where the file gives them
  std::string subnet;       // of the network that gives them; "": none does
  std::vector<std::string> words;     // what has no effect, and why: for whoever asks
  std::vector<std::string> warnings;  // what is not as Compose would have it
};

// `lookup` knows the variables of "${TAG:-7}". ErrorKind::input.
[[nodiscard]] Result<ComposeNodes> read_compose(std::string_view text, const std::filesystem::path& file,
                                                const compose::Lookup& lookup,
                                                const std::vector<std::filesystem::path>& further = {});
// Each put over those before, with this process's variables and those of `.env` beside the first.
[[nodiscard]] Result<ComposeNodes> read_compose_files(const std::vector<std::filesystem::path>& files);

}  // namespace rose::config
