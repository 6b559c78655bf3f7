// What a process or thread does just now.
#pragma once

#include <sys/types.h>

#include "kernel/processes.h"

namespace rose::test {

// 'S', 't', 'Z', ... as /proc has it; '?': there is none.
inline char state_of(pid_t pid) {
  const auto stat = kernel::process_stat(pid);
  return stat ? stat->state : '?';
}

}  // namespace rose::test
