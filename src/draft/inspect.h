// Looks at a running process through /proc: what it was started with, what it has open, where it listens. Asks for no
// more than reading its files there, and says what it may not read. The process may end at any moment.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "draft/facts.h"

namespace rose::draft {

// `members`: all processes of the node, `main` among them. ErrorKind::usage when it ended or is no program.
[[nodiscard]] Result<Seen> inspect(pid_t main, const std::vector<pid_t>& members, std::optional<Unit> unit,
                                   const std::string& origin);

// The same in a container: where it listens, what it connects to, what it was started with. Its paths are its own.
[[nodiscard]] Result<Seen> inspect_inside(pid_t main, const std::vector<pid_t>& members, const std::string& origin);

// The first process of a daemon that `pid` is a worker of: its ancestors that run the same program.
[[nodiscard]] pid_t first_of_its_kind(pid_t pid);

// The unit ("x.service") in whose cgroup a process is; "" none.
[[nodiscard]] std::string unit_of(pid_t pid);
// The container's id in whose cgroup it is; "" none.
[[nodiscard]] std::string container_of(pid_t pid);

[[nodiscard]] Host inspect_host();

}  // namespace rose::draft
