// Processes as /proc tells of them, by the numbers of the reader's own PID namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/fd.h"

namespace rose::kernel {

struct ProcessStat {
  pid_t ppid = 0;
  char state = '?';               // 'S', 'T', 'Z', ...
  std::uint64_t start_ticks = 0;  // since boot; with the pid, this names a process for ever
};
// Of a thread, too. Nothing when there is no such process, or when it cannot be read.
[[nodiscard]] std::optional<ProcessStat> process_stat(pid_t pid);
// The number is taken: also of a zombie, and of what may not be signalled.
[[nodiscard]] bool process_exists(pid_t pid);

// `roots` and all that descend from them, alive now; parents first, nobody twice.
[[nodiscard]] std::vector<pid_t> with_descendants(const std::vector<pid_t>& roots);

// False for the first process of a PID namespace that has no handler for the signal: the kernel drops it then (all but
// SIGKILL and SIGSTOP).
[[nodiscard]] bool heeds(pid_t pid, int signal);

// The signal does nothing to the process: it is ignored, or dropped as above. False for one that is gone.
[[nodiscard]] bool ignores(pid_t pid, int signal);

// Who traces the process or thread; 0: nobody.
[[nodiscard]] pid_t tracer_of(pid_t pid);

// The number by which the process or thread knows itself, in its own PID namespace; `pid` where that can't be told.
[[nodiscard]] pid_t own_number(pid_t pid);

// Invalid, with errno, when there is no such process.
[[nodiscard]] Fd open_pidfd(pid_t pid);
// False, with errno: it has ended, or may not be signalled.
bool pidfd_signal(int pidfd, int signal);

}  // namespace rose::kernel
