// The log files of a run: what the nodes' folders have, and what the configuration names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"

namespace rose::replay {

struct NodeLogFile {
  std::filesystem::path path;
  std::string node;
};
// Those that are there by now; by node, then by name.
[[nodiscard]] std::vector<NodeLogFile> run_logs(const config::Config& config, const std::filesystem::path& run_dir);

}  // namespace rose::replay
