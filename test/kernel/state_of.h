// The scheduler state of a process or thread.
#pragma once

#include <sys/types.h>

#include "kernel/processes.h"

namespace rose::test {

// The letter as in /proc, such as 'S', 't' or 'Z'. '?' if there is no such process.
inline char state_of(pid_t pid) {
  const auto stat = kernel::process_stat(pid);
  return stat ? stat->state : '?';
}

}  // namespace rose::test
