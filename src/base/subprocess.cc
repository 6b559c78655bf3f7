#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/pipe.h"
#include "base/units.h"

namespace rose {
namespace {

constexpr std::size_t kKept = std::size_t{1} << 20;

// Only the parent's end is non-blocking: a child that does not expect EAGAIN would lose output.
Result<Pipe> make_output_pipe() {
  ROSE_TRY(Pipe pipe, make_pipe());
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

// Makes a file rather than a pipe, so that the child can read it at its own pace, and the parent does not have to feed
// it.
Result<Fd> make_input(std::string_view input) {
  if (input.empty()) {
    Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return fail_errno(ErrorKind::environment, "cannot open /dev/null", errno);
    return null;
  }
  Fd file(::memfd_create("rose-input", MFD_CLOEXEC));
  if (!file) return fail_errno(ErrorKind::environment, "memfd_create", errno);
  while (!input.empty()) {
    const ssize_t n = ::write(file.get(), input.data(), input.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(ErrorKind::environment, "cannot write a command's input", errno);
    input.remove_prefix(static_cast<std::size_t>(n));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Reads what is available. Output beyond the limit is read and dropped, so that the child never blocks. Returns false
// at the end of the stream.
bool drain(Fd& fd, std::string& into) {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    into.append(buffer.data(), std::min(static_cast<std::size_t>(n), kKept - into.size()));
  }
}

// Owns posix_spawn's attributes and file actions, which must be destroyed.
struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
  }
};

Fd open_process(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

void kill_group(pid_t pid) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // in case it left its group
}

// Returns false if the wait was interrupted.
bool wait_for(std::span<pollfd> waits, std::int64_t most_ns) {
  most_ns = std::max<std::int64_t>(most_ns, 0);
  const timespec most{most_ns / 1'000'000'000, most_ns % 1'000'000'000};
  return ::ppoll(waits.data(), waits.size(), &most, nullptr) >= 0;
}

int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<pid_t> spawn_process(const std::vector<std::string>& argv, int in, int out, int err) {
  SpawnPlan plan;
  ::posix_spawn_file_actions_adddup2(&plan.actions, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, err, STDERR_FILENO);

  // cancel::install blocks signals and ignores others; a child would inherit both.
  sigset_t none;
  sigset_t standard;
  sigemptyset(&none);
  sigemptyset(&standard);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGXFSZ}) sigaddset(&standard, signal);
  ::posix_spawnattr_setsigmask(&plan.attributes, &none);
  ::posix_spawnattr_setsigdefault(&plan.attributes, &standard);
  // The child gets its own process group. A Ctrl-C at the terminal must not reach a helper that cleans up, and a
  // timeout must also end the processes that the helper started.
  ::posix_spawnattr_setpgroup(&plan.attributes, 0);
  ::posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0].c_str(), &plan.actions, &plan.attributes, arguments.data(), environ);
  if (error == ENOENT)
    return fail(ErrorKind::environment, fmt::format("cannot run '{}': it was not found", argv[0]),
                argv[0].find('/') == std::string::npos ? fmt::format("install '{}' or add its folder to PATH", argv[0])
                                                       : std::string{});
  if (error != 0) return fail_errno(ErrorKind::environment, fmt::format("cannot run '{}'", argv[0]), error);
  return pid;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

Result<Output> run_command(const std::vector<std::string>& argv, std::string_view input, std::int64_t timeout_ns) {
  ROSE_ASSERT(!argv.empty());
  ROSE_TRY(Fd in, make_input(input));
  ROSE_TRY(Pipe out, make_output_pipe());
  ROSE_TRY(Pipe err, make_output_pipe());
  const std::int64_t deadline = monotonic_ns() + timeout_ns;
  ROSE_TRY(const pid_t pid, spawn_process(argv, in.get(), out.write.get(), err.write.get()));
  out.write.reset();
  err.write.reset();
  in.reset();

  const Fd process = open_process(pid);
  if (!process) {
    const int error = errno;
    kill_group(pid);
    reap(pid);
    return fail_errno(ErrorKind::environment, "pidfd_open", error);
  }

  Output output;
  for (;;) {
    const std::int64_t left = deadline - monotonic_ns();
    if (left <= 0) {
      kill_group(pid);
      reap(pid);
      return fail(ErrorKind::inconclusive, fmt::format("'{}' did not end within {} and was killed",
                                                       fmt::join(argv, " "), format_duration(timeout_ns)));
    }
    std::array<pollfd, 3> waits{{{process.get(), POLLIN, 0},
                                 {out.read ? out.read.get() : -1, POLLIN, 0},
                                 {err.read ? err.read.get() : -1, POLLIN, 0}}};
    if (!wait_for(waits, left)) continue;
    if (out.read && waits[1].revents != 0 && !drain(out.read, output.out)) out.read.reset();
    if (err.read && waits[2].revents != 0 && !drain(err.read, output.err)) err.read.reset();
    if (waits[0].revents != 0) break;
  }
  // The child has ended. A daemon that it left behind may hold the pipes open, so read what is available instead of
  // waiting for the end of the streams.
  if (out.read) drain(out.read, output.out);
  if (err.read) drain(err.read, output.err);
  output.exit_code = reap(pid);
  return output;
}

namespace {

class SideBySideRun {
 public:
  SideBySideRun(const std::vector<std::vector<std::string>>& commands, const SideBySide& how, Fd nothing)
      : commands_(commands), how_(how), nothing_(std::move(nothing)), ended_(commands.size()) {}

  Result<std::vector<Ended>> run() {
    while (next_ < commands_.size() || !running_.empty()) {
      while (next_ < commands_.size() && running_.size() < how_.at_once) ROSE_CHECK(start_next());
      if (running_.empty()) continue;
      std::vector<pollfd> waits = awaited();
      if (!wait_for(waits, first_deadline() - monotonic_ns())) continue;
      if (cancel::requested()) {
        end_all();
        ROSE_CHECK(cancel::check());
      }
      std::vector<Running> still;
      for (std::size_t i = 0; i < running_.size(); ++i)
        if (goes_on(running_[i], std::span(waits).subspan(1 + 3 * i, 3))) still.push_back(std::move(running_[i]));
      running_ = std::move(still);
    }
    return std::move(ended_);
  }

 private:
  struct Running {
    std::size_t index = 0;
    pid_t pid = 0;
    Fd process, out, err;
    std::int64_t began_ns = 0;
  };

  // A command that cannot be started counts as ended. Any other error ends all commands.
  Result<void> start_next() {
    Running one;
    one.index = next_++;
    one.began_ns = monotonic_ns();
    Result<Pipe> out = make_output_pipe();
    Result<Pipe> err = make_output_pipe();
    Result<pid_t> pid = fail(ErrorKind::environment, "no file descriptors are left",
                             "raise the limit (ulimit -n) or run fewer commands at once");
    if (out && err) pid = spawn_process(commands_[one.index], nothing_.get(), out->write.get(), err->write.get());
    if (!pid) {
      ended_[one.index].err = pid.error().message;
      return {};
    }
    ended_[one.index].started = true;
    one.pid = *pid;
    one.out = std::move(out->read);
    one.err = std::move(err->read);
    one.process = open_process(*pid);
    const int error = errno;
    running_.push_back(std::move(one));
    if (running_.back().process) return {};
    end_all();
    return fail_errno(ErrorKind::environment, "pidfd_open", error);
  }

  // Returns the cancellation descriptor, followed by three descriptors for each command: the first of these is readable
  // once the command has ended; the others are its stdout and its stderr.
  [[nodiscard]] std::vector<pollfd> awaited() const {
    std::vector<pollfd> waits = {{cancel::fd(), POLLIN, 0}};
    for (const Running& one : running_) {
      waits.push_back({one.process.get(), POLLIN, 0});
      waits.push_back({one.out ? one.out.get() : -1, POLLIN, 0});
      waits.push_back({one.err ? one.err.get() : -1, POLLIN, 0});
    }
    return waits;
  }

  [[nodiscard]] std::int64_t first_deadline() const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const Running& one : running_) first = std::min(first, one.began_ns + how_.timeout_ns);
    return first;
  }

  // Handles the events `came` of one command (in the order of awaited()). Returns false if the command has ended or was
  // ended here.
  bool goes_on(Running& one, std::span<const pollfd> came) {
    Ended& end = ended_[one.index];
    const bool over = came[0].revents != 0;
    // Once the command has ended, everything that it wrote can be read.
    const bool wanted = (came[1].revents == 0 && !over) || take(one);
    if (one.err && came[2].revents != 0 && !drain(one.err, end.err)) one.err.reset();
    const bool late = monotonic_ns() - one.began_ns >= how_.timeout_ns;
    if (!over && wanted && !late) return true;
    end.refused = !wanted;
    end.timed_out = wanted && !over;
    if (!over || !wanted) kill_group(one.pid);
    close(one);
    return false;
  }

  // Returns false if the caller wants no more output of this command.
  bool take(Running& one) {
    std::array<char, 65536> buffer;
    while (one.out) {
      const ssize_t n = ::read(one.out.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) {
        one.out.reset();
        break;
      }
      if (!how_.out(one.index, {buffer.data(), static_cast<std::size_t>(n)})) return false;
    }
    return true;
  }

  void close(Running& one) {
    Ended& end = ended_[one.index];
    if (one.err) drain(one.err, end.err);
    end.exit_code = reap(one.pid);
    end.seconds = static_cast<double>(monotonic_ns() - one.began_ns) / 1e9;
  }

  void end_all() {
    for (Running& one : running_) {
      kill_group(one.pid);
      close(one);
    }
    running_.clear();
  }

  const std::vector<std::vector<std::string>>& commands_;
  const SideBySide& how_;
  const Fd nothing_;  // stdin of the commands
  std::vector<Ended> ended_;
  std::vector<Running> running_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::vector<Ended>> run_side_by_side(const std::vector<std::vector<std::string>>& commands,
                                            const SideBySide& how) {
  ROSE_TRY(Fd nothing, make_input({}));
  return SideBySideRun(commands, how, std::move(nothing)).run();
}

}  // namespace rose
