// Functions of Python in one run: writes the agent to the run's folder and supplies the environment by which processes
// of Python load it. The node's command is not changed. CPython from 3.6 on, unless it ignores its environment (-E, -I)
// or imports no site (-S).
//
//   RUN/rose.python/rose-python.so            the agent. A BPF program is attached to this file
//   RUN/rose.python/site/sitecustomize.py     loads the agent, and then the sitecustomize that it replaces
//   RUN/rose.python/NODE/PID.stacks           in which functions threads are (python/stacks_layout.h)
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

// True if a program with this path is CPython: "/usr/bin/python3.11".
[[nodiscard]] bool is_python(std::string_view program);

struct Frame {
  std::string function;  // "spool.Spool.compact"; before Python 3.11 "spool.compact"
  std::string file;      // as the interpreter names it
  int line = 0;          // where the function begins
};

class Session {
 public:
  // Writes the files to the run's folder, which must exist. Returns ErrorKind::environment if the file system does not
  // allow execution.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const std::filesystem::path& run_dir);

  [[nodiscard]] const std::filesystem::path& agent() const { return agent_; }
  // Watches the functions of a node, whose folder exists and belongs to its user.
  [[nodiscard]] Result<void> watch(const std::string& node);

  // PYTHONPATH and the agent's own; empty for nodes that are not watched.
  using Variables = std::map<std::string, std::string>;
  [[nodiscard]] Variables environment(const std::string& node, const Variables& own) const;
  [[nodiscard]] bool watches(const std::string& node) const { return watched_.contains(node); }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  // The application's functions in which a thread of the node is, or was when it ended; innermost first. `tid`: the
  // thread's id in its own PID namespace.
  [[nodiscard]] std::vector<Frame> stack_of(const std::string& node, pid_t tid) const;

 private:
  std::filesystem::path run_dir_, folder_, agent_;
  std::set<std::string> watched_;
};

// The stack of a thread in the bytes of a StacksFile.
[[nodiscard]] std::vector<Frame> parse_stack(std::string_view bytes, std::uint32_t tid);

}  // namespace rose::python
