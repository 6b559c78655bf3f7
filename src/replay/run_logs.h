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
// By its name. Where V8 has put its code, which it writes for profilers (isolate-0x...-v8.log), is no log.
[[nodiscard]] bool is_log(const std::filesystem::path& file);
// Those that are there by now; by node, then by name.
[[nodiscard]] std::vector<NodeLogFile> run_logs(const config::Config& config, const std::filesystem::path& run_dir);

}  // namespace rose::replay
