// Processes as /proc shows them, with the ids of rose's own PID namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/fd.h"

namespace rose::kernel {

struct ProcessStat {
  pid_t ppid = 0;
  char state = '?';  // 'S', 'T', 'Z', ...
  // it has executed its last instruction, but may still wait for other processes of its PID namespace
  bool exiting = false;
  std::uint64_t start_ticks = 0;  // since boot; together with the pid, this identifies a process uniquely
};
// Also accepts thread ids. Returns nothing if the process does not exist or cannot be read.
[[nodiscard]] std::optional<ProcessStat> process_stat(pid_t pid);
// True if the id is in use, including by zombies and by processes that may not be signalled.
[[nodiscard]] bool process_exists(pid_t pid);

// `roots` and all their living descendants, parents first, without duplicates.
[[nodiscard]] std::vector<pid_t> with_descendants(const std::vector<pid_t>& roots);

// False if the kernel would drop the signal: the init process of a PID namespace receives only signals for which it has
// a handler, apart from SIGKILL and SIGSTOP.
[[nodiscard]] bool heeds(pid_t pid, int signal);

// True if the signal does nothing to the process, because the process ignores it or the kernel drops it (see heeds()).
// False if the process has ended.
[[nodiscard]] bool ignores(pid_t pid, int signal);

// The tracer of the process or thread; 0 if it is not traced.
[[nodiscard]] pid_t tracer_of(pid_t pid);

// The id of the process or thread in its own PID namespace, or `pid` if that is unknown.
[[nodiscard]] pid_t own_number(pid_t pid);

// True if the mount namespace of this process or thread belongs to rose's own user namespace. In any other mount
// namespace, an unprivileged user may have mounted a FUSE file system, possibly below an overlay. Opening, reading or
// even closing a file of it may wait for that user's program, and no signal ends the wait.
[[nodiscard]] bool trusts_mounts_of(pid_t pid);

// Returns no descriptor and sets errno if the process does not exist.
[[nodiscard]] Fd open_pidfd(pid_t pid);
[[nodiscard]] bool pidfd_ended(int pidfd);
// Returns false and sets errno if the process has ended or may not be signalled.
bool pidfd_signal(int pidfd, int signal);
// Returns a descriptor of the process `pid` if `list` contains its id; otherwise an invalid one. The id may belong to
// another process by the time it is used. Therefore the descriptor is opened before the list is read: it then refers
// either to a process in the list or to one that has ended.
using ListProcesses = std::function<std::vector<pid_t>()>;
[[nodiscard]] Fd open_listed(pid_t pid, const ListProcesses& list);
bool signal_listed(pid_t pid, const ListProcesses& list, int signal);

}  // namespace rose::kernel
