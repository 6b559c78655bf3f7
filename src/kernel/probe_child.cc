#include "kernel/probe_child.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/clock.h"

namespace rose::kernel::probing {

Child::Child(const std::function<int(int)>& body) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return;
  socket_ = Fd(pair[0]);
  Fd theirs(pair[1]);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent ended before the line above
  socket_.reset();
  ::_exit(body(theirs.get()));
}

Child::~Child() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int Child::wait(int timeout_ms) {
  const std::int64_t end = monotonic_ns() + std::int64_t{timeout_ms} * 1'000'000;
  for (;;) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      pid_ = -1;
      return status;
    }
    if ((got < 0 && errno != EINTR) || monotonic_ns() >= end) return -1;
    const timespec pause = {0, 500'000};
    ::nanosleep(&pause, nullptr);
  }
}

void Child::release() const { (void)::send(socket_.get(), "g", 1, MSG_NOSIGNAL); }

bool wait_for_parent(int socket) {
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(socket, &byte, 1)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

bool wait_readable(int fd, int timeout_ms) {
  pollfd item = {fd, POLLIN, 0};
  return ::poll(&item, 1, timeout_ms) == 1 && (item.revents & POLLIN) != 0;
}

}  // namespace rose::kernel::probing
