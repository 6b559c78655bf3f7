#include "base/held_child.h"
#include "base/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rose {
namespace {

// how long to wait for the keeper (see keep()), which itself may wait for a process that a system call blocks
constexpr int kKeeperPatienceMs = 5000;

// Runs in the child of a multithreaded process: do not take locks or allocate memory from here on.
[[noreturn]] void become(char** argv, int go, int failed) {
  char word = 0;
  ssize_t n = 0;
  do {
    n = ::read(go, &word, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1) ::_exit(127);  // the parent closed the pipe without releasing the child
  ::execvp(argv[0], argv);
  const int error = errno;
  n = ::write(failed, &error, sizeof error);
  ::_exit(n == sizeof error ? 127 : 126);
}

// Kills all children of this process, which has one thread. When a child ends, its own children are reparented to this
// process, so the loop repeats until there are none.
void end_children() {
  for (;;) {
    char text[4096];
    const int file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? 0 : ::read(file, text, sizeof text);
    if (file >= 0) ::close(file);
    pid_t pid = 0;
    for (ssize_t i = 0; i < n; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        pid = pid * 10 + (text[i] - '0');
        continue;
      }
      if (pid > 0) ::kill(pid, SIGKILL);
      pid = 0;
    }
    int status = 0;
    if (::waitpid(-1, &status, file < 0 ? WNOHANG : 0) <= 0 && errno != EINTR) return;
    // This kernel has no list of children. Children that are in the group are killed with it; the others continue to
    // run.
    if (file < 0) return;
  }
}

// Runs in the keeper, the process between rose and the command. It ends all descendants of the command, in whatever
// session and group, when the command has ended or when rose closes its end of `go`, and therefore also when rose dies.
[[noreturn]] void keep(char** argv, int go, int failed, int null, int errors) {
  enum : int { kGo = 3, kFailed = 4, kFirstOther = 5 };
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int high[] = {::fcntl(go, F_DUPFD, 64), ::fcntl(failed, F_DUPFD, 64), ::fcntl(errors, F_DUPFD, 64)};
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(high[2], STDERR_FILENO);
  ::dup2(high[0], kGo);
  ::dup2(high[1], kFailed);
  // inherited descriptors may be write ends of pipes, and readers of a pipe wait until all its writers have closed it
  ::close_range(kFirstOther, ~0U, 0);
  ::fcntl(kGo, F_SETFD, FD_CLOEXEC);
  ::fcntl(kFailed, F_SETFD, FD_CLOEXEC);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
  char word = 0;
  ssize_t n = 0;
  do {
    n = ::read(kGo, &word, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1) ::_exit(127);
  const auto self = static_cast<pid_t>(::getpid());
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (static_cast<pid_t>(::syscall(SYS_getppid)) != self) ::_exit(127);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
    ::execvp(argv[0], argv);
    const int error = errno;
    n = ::write(kFailed, &error, sizeof error);
    ::_exit(n == sizeof error ? 127 : 126);
  }
  if (child < 0) {
    const int error = errno;
    n = ::write(kFailed, &error, sizeof error);
    ::_exit(n == sizeof error ? 127 : 126);
  }
  ::close(kFailed);
  ::dup2(STDIN_FILENO, STDERR_FILENO);
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd watched[] = {{kGo, POLLIN, 0}, {pidfd, POLLIN, 0}};
  while (watched[0].revents == 0 && watched[1].revents == 0)
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) break;
  if (watched[1].revents == 0) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end_children();
  if (!WIFSIGNALED(status)) ::_exit(WEXITSTATUS(status));
  // Ends in the same way as the command did, but without a core dump of its own.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(WTERMSIG(status), SIG_DFL);
  ::kill(self, WTERMSIG(status));
  ::_exit(128 + WTERMSIG(status));
}

}  // namespace

Result<HeldChild> HeldChild::fork_held(const std::vector<std::string>& argv, Kind kind) {
  ROSE_TRY(Pipe go, make_pipe());
  ROSE_TRY(Pipe failed, make_pipe());
  Pipe errors;
  Fd null;
  if (kind == Kind::own_group) {
    ROSE_TRY(errors, make_pipe());
    ::fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
    null = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null) return fail_errno(ErrorKind::environment, "cannot open /dev/null", errno);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  HeldChild child;
  child.name_ = argv.front();
  child.kind_ = kind;
  child.pid_ = ::fork();
  if (child.pid_ < 0) return fail_errno(ErrorKind::environment, "fork", errno);
  if (child.pid_ == 0) {
    ::close(go.write.get());
    if (kind == Kind::shares_terminal) become(arguments.data(), go.read.get(), failed.write.get());
    ::setpgid(0, 0);
    keep(arguments.data(), go.read.get(), failed.write.get(), null.get(), errors.write.get());
  }
  // Both the parent and the child call this, so it does not matter which of them runs first.
  if (kind == Kind::own_group) ::setpgid(child.pid_, child.pid_);
  child.go_ = std::move(go.write);
  child.failed_ = std::move(failed.read);
  child.errors_ = std::move(errors.read);
  child.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.pidfd_) return fail_errno(ErrorKind::environment, "pidfd_open", errno);
  return child;
}

HeldChild::HeldChild(HeldChild&& other) noexcept
    : name_(std::move(other.name_)),
      kind_(other.kind_),
      pid_(std::exchange(other.pid_, 0)),
      go_(std::move(other.go_)),
      failed_(std::move(other.failed_)),
      pidfd_(std::move(other.pidfd_)),
      errors_(std::move(other.errors_)) {}

Result<void> HeldChild::release() {
  if (::write(go_.get(), "g", 1) != 1) return fail_errno(ErrorKind::environment, "cannot start the command", errno);
  if (kind_ == Kind::shares_terminal) go_.reset();
  int error = 0;
  if (::read(failed_.get(), &error, sizeof error) == sizeof error)
    return fail(ErrorKind::usage, fmt::format("cannot run '{}': {}", name_, std::strerror(error)));
  return {};
}

std::optional<int> HeldChild::end(int patience_ms) {
  if (pid_ <= 0) return std::nullopt;
  pollfd watched{pidfd_.get(), POLLIN, 0};
  if (kind_ == Kind::shares_terminal) {
    go_.reset();
    if (::poll(&watched, 1, 0) == 0) {
      if (patience_ms > 0) ::kill(pid_, SIGTERM);
      if (patience_ms == 0 || ::poll(&watched, 1, patience_ms) == 0) ::kill(pid_, SIGKILL);
    }
  } else {
    if (patience_ms > 0 && ::poll(&watched, 1, 0) == 0) {
      ::kill(-pid_, SIGTERM);  // the keeper ignores it
      ::poll(&watched, 1, patience_ms);
    }
    go_.reset();  // the keeper ends all remaining processes
    ::poll(&watched, 1, kKeeperPatienceMs);
    // Until the child is waited for, its process id cannot be reused, so the signal cannot reach another group.
    ::kill(-pid_, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return status;
}

std::string HeldChild::describe(int status) const {
  return WIFSIGNALED(status) ? fmt::format("'{}' was ended by signal {}", name_, WTERMSIG(status))
                             : fmt::format("'{}' exited with status {}", name_, WEXITSTATUS(status));
}

}  // namespace rose
