// Processes by number: their descendants, and where an `attach` node's main process is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "config/config.h"

namespace rose::deploy {

struct ProcessStat {
  pid_t ppid = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;  // with the pid, this names a process for ever
};
[[nodiscard]] std::optional<ProcessStat> process_stat(pid_t pid);
// `pid` and all that descend from it, parents first.
[[nodiscard]] std::vector<pid_t> with_descendants(pid_t pid);

[[nodiscard]] Fd open_pidfd(pid_t pid);
[[nodiscard]] bool pidfd_signal(int pidfd, int signal);

struct Attached {
  pid_t pid = 0;                 // its main process
  std::filesystem::path cgroup;  // v2 folder; "" when it shares the top one
};
// Where the system that `setup` started is now. Errors say what was looked for.
[[nodiscard]] Result<Attached> find_attached(const config::Attach& attach, const std::filesystem::path& run_dir);

// Of the processes in a folder the one that a daemon's others descend from: its parent is outside, and it is the oldest.
[[nodiscard]] pid_t leading_process(const std::vector<pid_t>& pids);

}  // namespace rose::deploy
