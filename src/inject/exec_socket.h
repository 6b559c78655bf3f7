// Where systems that rose did not start come in: `rose exec`, the entry point of a container or unit, asks at a socket
// in the run's directory which syscalls of its node are wanted, installs that filter on itself and hands its listener
// over. Both ends are here. The socket is its owner's alone (0600) and there only while a run wants something of an
// attached node.
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

// The run's side.
class ExecSocket {
 public:
  struct Host {
    std::vector<std::string> nodes;
    std::vector<std::vector<int>> syscalls;  // by node; none: nothing is wanted of it
    std::function<void(std::size_t, pid_t, Fd, std::shared_ptr<Ledger>)> on_listener;  // from its own thread
  };
  [[nodiscard]] static Result<std::unique_ptr<ExecSocket>> open(const std::filesystem::path& socket, Host host);
  virtual ~ExecSocket() = default;
  // Nobody comes in any more. Who is in is told that rose is gone when this is destroyed: destroy the listeners first.
  virtual void close() = 0;
};

// The other side: becomes `argv`, under the filter that the run behind `socket` wants of `node`, or just so when there
// is no run. Comes back only with an error.
//
// A filtered call needs somebody to answer it: that is rose for as long as it lives. A keeper process (named rose-exec,
// without a filter, in the same cgroup) holds the listener too, and lets every call go on once rose is gone, so that
// what was entered survives the run; it ends with the last filtered process.
[[nodiscard]] Error enter(const std::filesystem::path& socket, const std::string& node,
                          const std::vector<std::string>& argv);

}  // namespace rose::inject
