// Connects a run with nodes that rose did not start. `rose exec`, the entry point of a container or unit, connects to a
// socket in the run's directory and receives the list of its node's system calls of which rose must be notified. It
// installs a filter for these calls on itself, and passes the filter's listener to rose. Both ends are implemented
// here. Only the socket's owner can use it (mode 0600), and it exists only during runs that need a filter for such a
// node.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "inject/ledger.h"

namespace rose::inject {

// The run's end of the socket, which admits commands of `rose exec`.
class ExecSocket {
 public:
  struct Host {
    std::vector<std::string> nodes;
    std::vector<std::vector<int>> syscalls;  // by node; empty: the node needs no filter
    // Called with the node, the process and its listener, in the ExecSocket's thread. The ledger may be null.
    std::function<void(std::size_t, pid_t, Fd, std::shared_ptr<Ledger>)> on_listener;
  };
  [[nodiscard]] static Result<std::unique_ptr<ExecSocket>> open(const std::filesystem::path& socket, Host host);
  virtual ~ExecSocket() = default;
  // Admits no further commands. The destruction of this object informs the keepers of admitted commands (see enter())
  // that rose has ended, so destroy the listeners first.
  virtual void close() = 0;
};

// The command's end: executes `argv`, with the filter that the run behind `socket` needs for `node`, or without a
// filter if there is no run or the run needs none. Returns only on error.
//
// A filtered call waits for an answer from rose. Therefore, a keeper process (named rose-exec, without a filter, in the
// same cgroup) also has the listener and lets every call continue once rose has ended, so that admitted commands
// survive the run. The keeper ends with the last filtered process.
[[nodiscard]] Error enter(const std::filesystem::path& socket, const std::string& node,
                          const std::vector<std::string>& argv);

}  // namespace rose::inject
