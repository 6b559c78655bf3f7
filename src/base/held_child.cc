#include "base/held_child.h"
#include "base/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rose {
namespace {

// Runs in the child of a multithreaded process: do not take locks or allocate memory from here on.
[[noreturn]] void become(char** argv, HeldChild::Kind kind, pid_t parent, int go, int failed, int null, int errors) {
  if (kind == HeldChild::Kind::own_group) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(null, STDIN_FILENO);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
  }
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
  const pid_t parent = ::getpid();
  child.pid_ = ::fork();
  if (child.pid_ < 0) return fail_errno(ErrorKind::environment, "fork", errno);
  if (child.pid_ == 0) {
    ::close(go.write.get());
    if (kind == Kind::own_group) ::setpgid(0, 0);
    become(arguments.data(), kind, parent, go.read.get(), failed.write.get(), null.get(), errors.write.get());
  }
  // parent and child both call this, so the order does not matter
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
  go_.reset();
  int error = 0;
  if (::read(failed_.get(), &error, sizeof error) == sizeof error)
    return fail(ErrorKind::usage, fmt::format("cannot run '{}': {}", name_, std::strerror(error)));
  return {};
}

std::optional<int> HeldChild::end(int patience_ms) {
  if (pid_ <= 0) return std::nullopt;
  const pid_t all = kind_ == Kind::own_group ? -pid_ : pid_;
  go_.reset();
  pollfd watched{pidfd_.get(), POLLIN, 0};
  if (::poll(&watched, 1, 0) == 0) {
    if (patience_ms > 0) ::kill(all, SIGTERM);
    if (patience_ms == 0 || ::poll(&watched, 1, patience_ms) == 0) ::kill(all, SIGKILL);
  }
  // Until the child is waited for, its process id cannot be reused, so the signal cannot reach another group.
  if (kind_ == Kind::own_group) ::kill(all, SIGKILL);
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
