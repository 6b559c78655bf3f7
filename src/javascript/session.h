// Watches functions of Node.js in one run. Writes the agent to the run's folder, and supplies the environment that
// makes processes of Node.js load it. The node's command is not changed.
//
//   RUN/rose.node/agent.js         finds the functions and reports when they are entered
//   RUN/rose.node/rose-node.node   the addon through which agent.js reports. A BPF program is attached to this file
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rose::javascript {

// True if a program with this path is Node.js, such as "/usr/bin/node". A script or program of the user may have that
// name, too.
[[nodiscard]] bool is_node(std::string_view program);
// True if the process has loaded the agent. False also if the process has ended.
[[nodiscard]] bool has_agent(pid_t pid);

class Session {
 public:
  // Writes the files to the run's folder, which must exist. Fails with ErrorKind::environment if programs in that file
  // system cannot be executed.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const std::filesystem::path& run_dir);

  [[nodiscard]] const std::filesystem::path& agent() const { return addon_; }
  void watch(const std::string& node) { watched_.insert(node); }

  // The environment variables to set for the node: NODE_OPTIONS, which begins with the node's own value (in `own`), and
  // those that the agent reads. Empty for a node that is not watched.
  using Variables = std::map<std::string, std::string>;
  [[nodiscard]] Variables environment(const std::string& node, const Variables& own) const;

 private:
  std::filesystem::path folder_, addon_;
  std::set<std::string> watched_;
};

}  // namespace rose::javascript
