#include "replay/run_logs.h"

#include <algorithm>

#include "base/folder.h"

namespace rose::replay {

bool is_log(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return file.extension() == ".log" && !(name.starts_with("isolate-0x") && name.ends_with("-v8.log"));
}

std::vector<NodeLogFile> run_logs(const config::Config& config, const std::filesystem::path& run_dir) {
  std::vector<NodeLogFile> found;
  for (const config::Node& node : config.nodes) {
    std::vector<std::filesystem::path> files;
    const std::filesystem::path top = run_dir / node.name;
    const Result<OpenFolder> folder = OpenFolder::open(top);
    if (!folder) continue;
    for (const std::string& name : folder->names())
      if (is_log(name) && folder->file(name)) files.push_back(top / name);
    for (const std::string& file : node.logs)
      if (folder->file(file)) files.push_back(top / file);
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    for (std::filesystem::path& file : files) found.push_back({std::move(file), node.name, top});
  }
  return found;
}

}  // namespace rose::replay
