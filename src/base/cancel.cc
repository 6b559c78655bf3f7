#include "base/cancel.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <thread>

#include "base/clock.h"

namespace rose::cancel {
namespace {

std::atomic<bool> g_requested{false};
std::atomic<unsigned> g_times{0};
std::atomic<int> g_fd{-1};
std::atomic<int> g_dump_fd{-1};
std::atomic<int> g_patient{0};              // number of waits (Patience) that a further request would end
thread_local const Part* t_part = nullptr;  // the part that this thread works on
// the descriptor of t_part, which becomes readable once the part is cancelled
thread_local int t_fd = -1;

void raise_event(int fd) {
  const std::uint64_t one = 1;
  if (fd >= 0) [[maybe_unused]]
    const ssize_t n = ::write(fd, &one, sizeof one);
}

// Writes directly, because a thread that hangs may hold the log's lock. Writes nothing if stderr would block.
void say(std::string_view text) {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) > 0 && (out.revents & POLLOUT) != 0) [[maybe_unused]]
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
}

// Called when a further Ctrl-C arrives during cleanup.
void asked_again() {
  static bool reported = false;
  if (g_patient > 0) return;  // the request has ended a wait (Patience), and the cleanup continues
  if (reported) {
    say("rose: exits without cleaning up; 'rose heal' undoes what is left\n");
    ::_exit(exit_code(ErrorKind::cancelled));
  }
  reported = true;
  say("rose: still cleaning up; a further Ctrl-C exits at once, and 'rose heal' undoes the rest\n");
}

}  // namespace

Result<void> install(bool dump_signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  if (dump_signal) sigaddset(&set, SIGUSR1);
  g_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (g_fd < 0) return fail_errno(ErrorKind::environment, "eventfd", errno);
  if (dump_signal) g_dump_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // write() then returns an error at the limit of a file's size
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set] {
    for (;;) {
      int signal_number = 0;
      if (::sigwait(&set, &signal_number) != 0) continue;
      if (signal_number == SIGUSR1) {
        raise_event(g_dump_fd);
        continue;
      }
      const bool again = requested();
      // When a terminal closes, the kernel, the shell and sudo may each send SIGHUP. So a repeated SIGHUP is not a
      // further request of the user.
      if (again && signal_number == SIGHUP) continue;
      request();
      // A service manager may send SIGTERM both to rose and to its parent, so only SIGINT counts as a repeated request.
      if (again && signal_number == SIGINT) asked_again();
    }
  }).detach();
  return {};
}

bool requested() { return g_requested || (t_part != nullptr && t_part->requested()); }

Part::Part() : own_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), any_(::epoll_create1(EPOLL_CLOEXEC)) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  for (const int source : {own_.get(), g_fd.load()})
    if (source >= 0 && ::epoll_ctl(any_.get(), EPOLL_CTL_ADD, source, &event) != 0) any_.reset();
}

void Part::request() {
  requested_ = true;
  raise_event(own_.get());
}

Within::Within(const Part& part) {
  ROSE_ASSERT(t_part == nullptr);
  t_part = &part;
  t_fd = part.any_.get();
}
Within::~Within() {
  t_part = nullptr;
  t_fd = -1;
}

unsigned times() { return g_times; }

void request() {
  g_requested = true;
  ++g_times;
  raise_event(g_fd);
}

// A request that was made before the wait began does not end it, because this wait is a part of the cleanup that the
// request started.
Patience::Patience() : enough_(std::max(g_times + 1, 2U)) { ++g_patient; }
Patience::~Patience() { --g_patient; }
bool Patience::over() const { return g_times >= enough_; }

int fd() { return t_fd >= 0 ? t_fd : g_fd.load(); }
int dump_fd() { return g_dump_fd; }

Result<void> check() {
  if (requested()) return fail(ErrorKind::cancelled, "interrupted");
  return {};
}

bool sleep(std::int64_t ns) {
  const std::int64_t until = monotonic_ns() + ns;
  while (!requested()) {
    const std::int64_t left = until - monotonic_ns();
    if (left <= 0) return true;
    pollfd p{fd(), POLLIN, 0};
    const timespec ts{left / 1'000'000'000, left % 1'000'000'000};
    ::ppoll(&p, 1, &ts, nullptr);
  }
  return false;
}

}  // namespace rose::cancel
