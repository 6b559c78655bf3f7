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

// The command-line options and environment that `docker compose` would get.
struct ComposeChoice {
  std::vector<std::string> profiles;  // if not empty, replaces COMPOSE_PROFILES
  compose::Variables variables;       // override the variables of this process
};

struct ComposeNodes {
  std::vector<Node> nodes;  // the services that are started, in file order; with addresses if the file gives them
  std::string subnet;       // the subnet from which the file gives nodes addresses; "" if it gives none
  std::vector<std::string> words;       // settings without effect, and why; reported on request
  std::vector<std::string> warnings;    // settings that rose handles differently than Compose
  std::vector<std::string> profiles;    // profiles that caused services to be started
  compose::Variables from_environment;  // variables that the file uses and this process supplied, in order of use
};

// `lookup` resolves variables such as "${TAG:-7}". Returns ErrorKind::input.
[[nodiscard]] Result<ComposeNodes> read_compose(std::string_view text, const std::filesystem::path& file,
                                                const compose::Lookup& lookup,
                                                const std::vector<std::filesystem::path>& further = {});
// Each file overrides the previous ones. Variables come from `choice`, this process and `.env` beside the first file.
[[nodiscard]] Result<ComposeNodes> read_compose_files(const std::vector<std::filesystem::path>& files,
                                                      const ComposeChoice& choice = {});
// The variables of `.env` in this folder; none if there is no such file. Errors are ErrorKind::input.
[[nodiscard]] Result<compose::Variables> dot_env_beside(const std::filesystem::path& folder,
                                                        const compose::Lookup& lookup);

}  // namespace rose::config
