#include "evidence/programs.h"

#include <algorithm>
#include <iterator>

#include "base/glob.h"
#include "evidence/path_search.h"
#include "kernel/syscalls.h"

namespace rose::evidence {
namespace {

std::uint64_t key_of(int node, std::int32_t pid) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32) | static_cast<std::uint32_t>(pid);
}

}  // namespace

Programs::Programs(const Given& given) {
  if (!given.inputs.profile) return;
  for (const profile::CallKind& kind : given.inputs.profile->state_changes) {
    if (!kind.syscall.starts_with("execve") || kind.path.empty()) continue;
    const std::string_view name = name_in(kind.path);
    if (name.find('*') == std::string_view::npos) names_.insert(name);
    else patterns_.push_back(name);
  }
  if (names_.empty() && patterns_.empty()) return;
  const int execve = kernel::syscall_number("execve").value_or(-1);
  const int execveat = kernel::syscall_number("execveat").value_or(-1);
  for (std::size_t s = 0; s < given.inputs.sources.size(); ++s) {
    const Source& source = given.inputs.sources[s];
    for (const Observation& event : source.observations) {
      if (event.type != EventType::sys || event.result != 0 || event.path == 0) continue;
      if (event.syscall != execve && event.syscall != execveat) continue;
      if (const int node = given.nodes.of(s, event); node >= 0)
        started_[key_of(node, event.pid)].emplace_back(event.ts_ns, !known(source.str(event.path)));
    }
  }
  for (auto& [process, starts] : started_) std::sort(starts.begin(), starts.end());
}

bool Programs::known(std::string_view path) const {
  const std::string_view name =
      name_in(path);  // only file names are compared, because production may have installed the program elsewhere
  return names_.contains(name) || std::any_of(patterns_.begin(), patterns_.end(),
                                              [&](std::string_view pattern) { return glob_match(pattern, name); });
}

bool Programs::foreign(int node, std::int32_t pid, std::int64_t ts) const {
  const auto of = started_.find(key_of(node, pid));
  if (of == started_.end()) return false;
  const auto after = std::upper_bound(of->second.begin(), of->second.end(), ts,
                                      [](std::int64_t t, const auto& start) { return t < start.first; });
  return after != of->second.begin() && std::prev(after)->second;
}

}  // namespace rose::evidence
