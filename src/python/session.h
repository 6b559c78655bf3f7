// Watches functions of Python in one run. Writes the agent to the run's folder, and supplies the environment that makes
// Python processes load it. The node's command is not changed. This works for CPython from 3.6 on, unless the process
// ignores its environment (-E, -I) or does not import `site` (-S).
//
//   RUN/rose.python/rose-python.so            the agent. A BPF program is attached to this file
//   RUN/rose.python/site/sitecustomize.py     loads the agent, and then the environment's own sitecustomize, if any
//   RUN/rose.python/NODE/PID.stacks           the functions that threads are executing (python/stacks_layout.h)
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rose::python {

// True if a program with this path is CPython, such as "/usr/bin/python3.11".
[[nodiscard]] bool is_python(std::string_view program);

struct Frame {
  std::string function;  // "spool.Spool.compact"; before Python 3.11 "spool.compact"
  std::string file;      // as the interpreter names it
  int line = 0;          // where the function begins
};

class Session {
 public:
  // Writes the files to the run's folder, which must exist. Fails with ErrorKind::environment if programs in that file
  // system cannot be executed.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const std::filesystem::path& run_dir);

  [[nodiscard]] const std::filesystem::path& agent() const { return agent_; }
  // Watches the functions of a node. The folder of the node must exist and belong to the node's user.
  [[nodiscard]] Result<void> watch(const std::string& node);

  // The environment variables to set for the node: PYTHONPATH, which ends with the node's own value (in `own`), and
  // those that the agent reads. Empty for a node that is not watched.
  using Variables = std::map<std::string, std::string>;
  [[nodiscard]] Variables environment(const std::string& node, const Variables& own) const;
  [[nodiscard]] bool watches(const std::string& node) const { return watched_.contains(node); }
  // True if a process of this node has loaded the agent.
  [[nodiscard]] bool loaded(const std::string& node) const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  // The application's functions that a thread of the node is executing, or was executing when it ended, innermost
  // first. `tid`: the thread's id in its own PID namespace.
  [[nodiscard]] std::vector<Frame> stack_of(const std::string& node, pid_t tid) const;

  // The application's functions that processes of a node have executed, with the lines where they begin.
  [[nodiscard]] std::vector<Frame> functions_of(const std::string& node) const;

 private:
  std::filesystem::path run_dir_, folder_, agent_;
  std::set<std::string> watched_;
};

// The stack of a thread, from the bytes of a StacksFile.
[[nodiscard]] std::vector<Frame> parse_stack(std::string_view bytes, std::uint32_t tid);
// The functions in the bytes of a StacksFile.
[[nodiscard]] std::vector<Frame> parse_functions(std::string_view bytes);

}  // namespace rose::python
