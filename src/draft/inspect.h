// Inspects a running process through /proc: how it was started, its open files, where it listens. Needs only read
// permission for these files and reports what it may not read. The process may end at any time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "draft/facts.h"

namespace rose::draft {

// `members`: all processes of the node, including `main`. Returns ErrorKind::usage if `main` has ended or is no
// program.
[[nodiscard]] Result<Seen> inspect(pid_t main, const std::vector<pid_t>& members, std::optional<Unit> unit,
                                   const std::string& origin);

// Like inspect(), for a container: only sockets, connections and command line, because its paths are not visible here.
[[nodiscard]] Result<Seen> inspect_inside(pid_t main, const std::vector<pid_t>& members, const std::string& origin);

// The first process of the daemon of which `pid` is a worker: the topmost ancestor that runs the same program.
[[nodiscard]] pid_t first_of_its_kind(pid_t pid);

// The unit ("x.service") whose cgroup contains the process; "" if none.
[[nodiscard]] std::string unit_of(pid_t pid);
// The id of the container whose cgroup contains the process; "" if none.
[[nodiscard]] std::string container_of(pid_t pid);

[[nodiscard]] Host inspect_host();

}  // namespace rose::draft
