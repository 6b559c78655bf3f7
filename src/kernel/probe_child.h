// A forked helper for the probes that would change or end the process that tries them. Private to the probes.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/fd.h"

namespace rose::kernel::probing {

// Runs `body` in a forked child, which ends with what it returns; killed when this object goes. The child dies
// with us, so a killed rose leaves none.
class Child {
 public:
  // `pipe`: the child reads our bytes there and writes its own (a socket pair).
  explicit Child(const std::function<int(int socket)>& body);
  // Takes over a child made otherwise (clone3).
  Child(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] bool started() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int socket() const { return socket_.get(); }

  // Its wait status, or -1 when it did not end in time.
  int wait(int timeout_ms);
  // Lets a child that waits in wait_for_parent() go on.
  void release() const;

 private:
  pid_t pid_ = -1;
  Fd socket_;
};

// In the child: blocks until release(); false when the parent is gone.
bool wait_for_parent(int socket);

// A byte from the other side within the time; false otherwise.
bool wait_readable(int fd, int timeout_ms);

}  // namespace rose::kernel::probing
