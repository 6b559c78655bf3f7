#include "javascript/session.h"

#include <algorithm>
#include <vector>

#include "base/agent_folder.h"
#include "base/file.h"
#include "base/folder.h"
#include "javascript/agent_file.h"
#include "kernel/maps.h"
#include "symbols/interpreters.h"

namespace rose::javascript {
namespace {

constexpr std::string_view kFolder = "rose.node", kAddon = "rose-node.node";

}  // namespace

bool is_node(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  // deno and bun also run JavaScript, but cannot load the agent
  return name.starts_with("node") && symbols::language_run_by(program) == "JavaScript";
}

bool has_agent(pid_t pid) {
  const std::vector<kernel::MappedRange> mapped = kernel::maps_of(pid);
  return std::any_of(mapped.begin(), mapped.end(), [](const kernel::MappedRange& range) {
    const std::filesystem::path file = range.name;
    return file.filename() == kAddon && file.parent_path().filename() == kFolder;
  });
}

Result<std::unique_ptr<Session>> Session::open(const std::filesystem::path& run_dir) {
  auto session = std::unique_ptr<Session>(new Session);
  session->folder_ = run_dir / kFolder;
  session->addon_ = session->folder_ / kAddon;
  ROSE_CHECK(check_loadable(run_dir, "Node.js"));
  // A node may run as another user, so all users must be able to read these files.
  ROSE_CHECK(make_own_folder(session->folder_, 0755));
  ROSE_CHECK(write_file(session->addon_, addon_bytes(), 0755));
  ROSE_CHECK(write_file(session->folder_ / "agent.js", agent_bytes(), 0644));
  return session;
}

Session::Variables Session::environment(const std::string& node, const Variables& own) const {
  if (!watched_.contains(node)) return {};
  std::string options = "--require \"" + (folder_ / "agent.js").string() + "\"";
  if (const auto before = own.find("NODE_OPTIONS"); before != own.end() && !before->second.empty())
    options = before->second + " " + options;
  return {{"NODE_OPTIONS", options}, {"ROSE_NODE_AGENT", addon_.string()}};
}

}  // namespace rose::javascript
