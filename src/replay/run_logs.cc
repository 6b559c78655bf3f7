#include "replay/run_logs.h"

#include <algorithm>

namespace rose::replay {

bool is_log(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return file.extension() == ".log" && !(name.starts_with("isolate-0x") && name.ends_with("-v8.log"));
}

std::vector<NodeLogFile> run_logs(const config::Config& config, const std::filesystem::path& run_dir) {
  std::vector<NodeLogFile> found;
  for (const config::Node& node : config.nodes) {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (const std::filesystem::directory_entry& entry :
         std::filesystem::directory_iterator(run_dir / node.name, error))
      if (entry.is_regular_file(error) && is_log(entry.path())) files.push_back(entry.path());
    for (const std::string& file : node.logs)
      if (const std::filesystem::path path = run_dir / node.name / file; std::filesystem::is_regular_file(path, error))
        files.push_back(path);
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    for (std::filesystem::path& file : files) found.push_back({std::move(file), node.name});
  }
  return found;
}

}  // namespace rose::replay
