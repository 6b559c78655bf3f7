// The scheduler state of a process or thread.
#pragma once

#include <sys/types.h>

#include "kernel/processes.h"

namespace rose::test {

// 'S', 't', 'Z', ... as in /proc; '?': there is no such process.
inline char state_of(pid_t pid) {
  const auto stat = kernel::process_stat(pid);
  return stat ? stat->state : '?';
}

}  // namespace rose::test
