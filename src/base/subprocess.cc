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

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "base/pipe.h"

namespace rose {
namespace {

constexpr std::size_t kKept = std::size_t{1} << 20;

// Only our end does not block: the child's must, or it would lose output.
Result<Pipe> make_output_pipe() {
  ROSE_TRY(Pipe pipe, make_pipe());
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

// A file, not a pipe: the child can read it at its own pace and we need not feed it.
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

// Reads what is there. What goes past the limit is read and dropped, so that the child never
// blocks on us. False at the end of the stream.
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

// posix_spawn's attributes and file actions need to be given back.
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

  // cancel::install blocks signals and ignores SIGPIPE; a child would inherit both.
  sigset_t none;
  sigset_t standard;
  sigemptyset(&none);
  sigemptyset(&standard);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}) sigaddset(&standard, signal);
  ::posix_spawnattr_setsigmask(&plan.attributes, &none);
  ::posix_spawnattr_setsigdefault(&plan.attributes, &standard);
  // A group of its own: a Ctrl-C at the terminal does not hit the helper that is cleaning up, and
  // a timeout ends what it started, too.
  ::posix_spawnattr_setpgroup(&plan.attributes, 0);
  ::posix_spawnattr_setflags(&plan.attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, argv[0].c_str(), &plan.actions, &plan.attributes, arguments.data(), environ);
  if (error == ENOENT)
    return fail(ErrorKind::environment, fmt::format("cannot run '{}': it was not found", argv[0]),
                argv[0].find('/') == std::string::npos
                    ? fmt::format("install '{}' or add its folder to PATH", argv[0])
                    : std::string{});
  if (error != 0) return fail_errno(ErrorKind::environment, fmt::format("cannot run '{}'", argv[0]), error);
  return pid;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

Result<Output> run_command(const std::vector<std::string>& argv, std::string_view input,
                           std::int64_t timeout_ns) {
  ROSE_ASSERT(!argv.empty());
  ROSE_TRY(Fd in, make_input(input));
  ROSE_TRY(Pipe out, make_output_pipe());
  ROSE_TRY(Pipe err, make_output_pipe());
  const std::int64_t deadline = monotonic_ns() + timeout_ns;
  ROSE_TRY(const pid_t pid, spawn_process(argv, in.get(), out.write.get(), err.write.get()));
  out.write.reset();
  err.write.reset();
  in.reset();

  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) {
    const int error = errno;
    ::kill(-pid, SIGKILL);
    reap(pid);
    return fail_errno(ErrorKind::environment, "pidfd_open", error);
  }

  Output output;
  for (;;) {
    const std::int64_t left = deadline - monotonic_ns();
    if (left <= 0) {
      ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);  // if it left its group
      reap(pid);
      return fail(ErrorKind::inconclusive,
                  fmt::format("'{}' did not end within {} and was killed", fmt::join(argv, " "),
                              format_duration(timeout_ns)));
    }
    std::array<pollfd, 3> waits{{{process.get(), POLLIN, 0},
                                 {out.read ? out.read.get() : -1, POLLIN, 0},
                                 {err.read ? err.read.get() : -1, POLLIN, 0}}};
    const timespec ts{left / 1'000'000'000, left % 1'000'000'000};
    if (::ppoll(waits.data(), waits.size(), &ts, nullptr) < 0) continue;
    if (out.read && waits[1].revents != 0 && !drain(out.read, output.out)) out.read.reset();
    if (err.read && waits[2].revents != 0 && !drain(err.read, output.err)) err.read.reset();
    if (waits[0].revents != 0) break;
  }
  // It has ended. A daemon that it left behind may hold the pipes open, so take what is there
  // rather than wait for their end.
  if (out.read) drain(out.read, output.out);
  if (err.read) drain(err.read, output.err);
  output.exit_code = reap(pid);
  return output;
}

Result<std::vector<Ended>> run_side_by_side(const std::vector<std::vector<std::string>>& commands, const SideBySide& how) {
  struct Running {
    std::size_t index = 0;
    pid_t pid = 0;
    Fd process, out, err;
    std::int64_t began_ns = 0;
  };
  std::vector<Ended> ended(commands.size());
  std::vector<Running> running;
  std::size_t next = 0;
  ROSE_TRY(const Fd nothing, make_input({}));

  const auto kill_group = [](const Running& one) {
    ::kill(-one.pid, SIGKILL);
    ::kill(one.pid, SIGKILL);  // if it left its group
  };
  // False: it is to be ended.
  const auto take = [&](Running& one) {
    std::array<char, 65536> buffer;
    while (one.out) {
      const ssize_t n = ::read(one.out.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) {
        one.out.reset();
        break;
      }
      if (!how.out(one.index, {buffer.data(), static_cast<std::size_t>(n)})) return false;
    }
    return true;
  };
  const auto close = [&](Running& one) {
    Ended& end = ended[one.index];
    if (one.err) drain(one.err, end.err);
    end.exit_code = reap(one.pid);
    end.seconds = static_cast<double>(monotonic_ns() - one.began_ns) / 1e9;
  };
  const auto end_all = [&] {
    for (Running& one : running) {
      kill_group(one);
      close(one);
    }
    running.clear();
  };

  while (next < commands.size() || !running.empty()) {
    while (next < commands.size() && running.size() < how.at_once) {
      Running one;
      one.index = next++;
      one.began_ns = monotonic_ns();
      Result<Pipe> out = make_output_pipe();
      Result<Pipe> err = make_output_pipe();
      Result<pid_t> pid = fail(ErrorKind::environment, "there are no more descriptors", "run fewer at once");
      if (out && err) pid = spawn_process(commands[one.index], nothing.get(), out->write.get(), err->write.get());
      if (!pid) {
        ended[one.index].err = pid.error().message;
        continue;
      }
      ended[one.index].started = true;
      one.pid = *pid;
      one.out = std::move(out->read);
      one.err = std::move(err->read);
      one.process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
      running.push_back(std::move(one));
      if (running.back().process) continue;
      const int error = errno;
      end_all();
      return fail_errno(ErrorKind::environment, "pidfd_open", error);
    }
    if (running.empty()) continue;

    std::vector<pollfd> waits = {{cancel::fd(), POLLIN, 0}};
    std::int64_t until = std::numeric_limits<std::int64_t>::max();
    for (const Running& one : running) {
      waits.push_back({one.process.get(), POLLIN, 0});
      waits.push_back({one.out ? one.out.get() : -1, POLLIN, 0});
      waits.push_back({one.err ? one.err.get() : -1, POLLIN, 0});
      until = std::min(until, one.began_ns + how.timeout_ns);
    }
    const std::int64_t left = std::max<std::int64_t>(until - monotonic_ns(), 0);
    const timespec ts{left / 1'000'000'000, left % 1'000'000'000};
    if (::ppoll(waits.data(), waits.size(), &ts, nullptr) < 0) continue;
    if (cancel::requested()) {
      end_all();
      ROSE_CHECK(cancel::check());
    }
    std::vector<Running> still;
    for (std::size_t i = 0; i < running.size(); ++i) {
      Running& one = running[i];
      const bool over = waits[3 * i + 1].revents != 0;
      // What it wrote before it ended is all there once it has.
      const bool wanted = (waits[3 * i + 2].revents == 0 && !over) || take(one);
      if (one.err && waits[3 * i + 3].revents != 0 && !drain(one.err, ended[one.index].err)) one.err.reset();
      const bool late = monotonic_ns() - one.began_ns >= how.timeout_ns;
      if (!over && wanted && !late) {
        still.push_back(std::move(one));
        continue;
      }
      ended[one.index].refused = !wanted;
      ended[one.index].timed_out = wanted && !over;
      if (!over || !wanted) kill_group(one);
      close(one);
    }
    running = std::move(still);
  }
  return ended;
}

}  // namespace rose
