// A pipe. Both ends are closed by the destructor and on exec.
#pragma once

#include <fcntl.h>

#include <cerrno>

#include "base/fd.h"
#include "base/result.h"

namespace rose {

struct Pipe {
  Fd read, write;
};

[[nodiscard]] inline Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorKind::environment, "pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace rose
