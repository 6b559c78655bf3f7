// Finds the log files of a run: those in the nodes' folders and those in the configuration.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"

namespace rose::replay {

struct NodeLogFile {
  std::filesystem::path path;
  std::string node;
  std::filesystem::path folder;  // the node's folder that contains it: access it through base/folder.h only
};
// Decides by name. The file in which V8 lists its code for profilers (isolate-0x...-v8.log) is not a log.
[[nodiscard]] bool is_log(const std::filesystem::path& file);
// The log files that exist now, by node and name.
[[nodiscard]] std::vector<NodeLogFile> run_logs(const config::Config& config, const std::filesystem::path& run_dir);

}  // namespace rose::replay
