// The addresses and ports of a process's sockets, from /proc.
#pragma once

#include <sys/types.h>

#include <vector>

#include "inject/shared.h"

namespace rose::inject {

// TCP and UDP, both families; an unbound address (0.0.0.0, ::) as sixteen zeros.
[[nodiscard]] std::vector<rose_endpoint> endpoints_of(pid_t pid);

}  // namespace rose::inject
