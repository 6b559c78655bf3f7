#include "evidence/forms.h"

#include <algorithm>

#include "base/units.h"
#include "evidence/surprise.h"
#include "profile/profile.h"

namespace rose::evidence {

std::int64_t rounded(std::int64_t ns) { return std::max(kTimeStep, (ns + kTimeStep / 2) / kTimeStep * kTimeStep); }

std::string path_glob(std::string_view path, std::string_view node, bool wide) {
  if (!file_path(path) || path.find('\0') != std::string_view::npos) return "";
  if (system_path(path)) return profile::path_pattern(path);
  while (path.starts_with("./")) path.remove_prefix(2);
  while (path.starts_with("../")) path.remove_prefix(3);
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  int parts = 1;
  if (!wide && !path.starts_with('/'))
    parts = 2;  // both components of a relative path ("data/db") are below the node's working directory
  if (!wide)
    if (const std::size_t at = path.rfind(fmt::format("/{}/", node)); !node.empty() && at != std::string_view::npos) {
      const std::string_view below = path.substr(at + node.size() + 2);
      parts = below.find('/') == std::string_view::npos ? 1 : 2;
    }
  const auto glob = [&](int n) {
    std::string tail = profile::tail_pattern(path, n);
    if (!tail.starts_with('*')) tail = (tail.starts_with('/') ? "*" : "*/") + tail;
    return tail;
  };
  // A file name without constant characters, such as "000017", identifies the file only together with its folder.
  std::string found = glob(parts);
  const auto letters = [](std::string_view text) {
    return std::count_if(text.begin(), text.end(),
                         [](char c) { return c != '*' && c != '/' && c != '.' && c != '-' && c != '_'; });
  };
  if (parts == 1 && letters(found) < 2) found = glob(2);
  return found;
}

std::int64_t longest_workload(const config::Config& config) {
  return config.workload ? config.workload->timeout_ns : 60 * kSecond;
}

schedule::Condition elapsed(std::int64_t ns) {
  return schedule::Condition::elapsed(std::max(
      kTimeStep, ns / kTimeStep * kTimeStep));  // rounded down, because a fault that is armed too late misses its call
}

std::vector<schedule::Condition> after_ns(std::int64_t ns) {
  ns = (ns + kTimeStep / 2) / kTimeStep * kTimeStep;
  if (ns <= 0) return {};
  return {schedule::Condition::elapsed(ns)};
}

}  // namespace rose::evidence
