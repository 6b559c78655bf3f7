#include "evidence/path_search.h"

#include <cerrno>
#include <set>
#include <unordered_map>

#include "evidence/surprise.h"
#include "kernel/syscalls.h"
#include "weights/weights.h"

namespace rose::evidence {

using namespace weights;

namespace {

constexpr std::int64_t kNextFolder = 100'000'000;  // ns; longest time between the lookups in two successive folders

bool may_be_step(const trace::Event& event) {
  return event.type == trace::EventType::scf && event.path != 0 &&
         (event.err == ENOENT || event.err == EACCES || event.err == ENOTDIR) &&
         lookup_call(kernel::syscall_name(event.syscall));
}

// The search that a thread is making.
struct PathSearch {
  std::string_view name;
  std::int64_t last_ns = 0;
  std::vector<std::size_t> steps;     // indexes of its events
  std::set<trace::StringId> folders;  // the paths that were looked up, one for each folder
  bool system = false;                // the search includes a system folder
};

void end_search(PathSearch& search, std::vector<bool>& out) {
  if (search.system && search.folders.size() >= kFewestFolders)
    for (const std::size_t step : search.steps) out[step] = true;
  search = {};
}

}  // namespace

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::vector<bool> search_steps(const Source& source) {
  std::vector<bool> out(source.observations.size());
  std::unordered_map<std::uint64_t, PathSearch> searches;  // by node and thread: the search that the thread is making
  for (std::size_t i = 0; i < source.observations.size(); ++i) {
    const trace::Event& event = source.observations[i];
    if (!may_be_step(event)) continue;
    const std::string_view path = source.str(event.path), name = name_in(path);
    PathSearch& search = searches[(std::uint64_t{event.node} << 32) | static_cast<std::uint32_t>(event.tid)];
    if (name != search.name || event.ts_ns - search.last_ns > kNextFolder) end_search(search, out);
    search.name = name;
    search.last_ns = event.ts_ns;
    search.steps.push_back(i);
    search.folders.insert(event.path);
    search.system = search.system || system_path(path);
  }
  for (auto& [thread, search] : searches) end_search(search, out);
  return out;
}

}  // namespace rose::evidence
