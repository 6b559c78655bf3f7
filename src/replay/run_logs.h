// Finds the log files of a run: those in the nodes' folders, and those that the configuration names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"

namespace rose::replay {

struct NodeLogFile {
  std::filesystem::path path;
  std::string node;
  // the folder of the node that contains the file, which must be accessed only through base/folder.h
  std::filesystem::path folder;
};
// Decides by the file's name. The file in which V8 lists its code for profilers (isolate-0x...-v8.log) is no log.
[[nodiscard]] bool is_log(const std::filesystem::path& file);
// The log files that exist now, sorted by node and name.
[[nodiscard]] std::vector<NodeLogFile> run_logs(const config::Config& config, const std::filesystem::path& run_dir);

}  // namespace rose::replay
