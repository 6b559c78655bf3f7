// A forked helper for probes that may change or end the process that runs them. Private to the probes.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/fd.h"

namespace rose::kernel::probing {

// Runs `body` in a forked child, which exits with the returned value. The destructor kills the child. The kernel kills
// it if rose itself is killed, so no child is left over.
class Child {
 public:
  // The child uses `socket` to exchange bytes with the parent.
  explicit Child(const std::function<int(int socket)>& body);
  // Takes ownership of a child that was created otherwise (clone3).
  Child(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] bool started() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int socket() const { return socket_.get(); }

  // Returns the child's wait status, or -1 if the child did not end in time.
  int wait(int timeout_ms);
  // Releases a child that waits in wait_for_parent().
  void release() const;

 private:
  pid_t pid_ = -1;
  Fd socket_;
};

// Runs in the child: blocks until release(). Returns false if the parent has ended.
bool wait_for_parent(int socket);

// Returns false if no byte arrives within the time.
bool wait_readable(int fd, int timeout_ms);

}  // namespace rose::kernel::probing
