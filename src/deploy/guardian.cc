#include "deploy/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/deployment.h"
#include "deploy/identity.h"
#include "deploy/machine/cgroup.h"
#include "kernel/cgroup2.h"
#include "kernel/processes.h"

namespace rose::deploy {
namespace {

// Descriptors of the guardian at its start.
enum : int { kRoseFd = 3, kWordFd = 4, kLockFd = 5, kFirstOther = 6 };

constexpr char kReady = 'r';
constexpr char kDismissed = 'q';
constexpr std::int64_t kStarts = 10 * kSecond;
constexpr std::int64_t kEnds = 5 * kSecond;
constexpr const char* kName = "rose-guardian";
// Where systemd keeps the processes of units on machines with cgroups v1.
constexpr const char* kSystemdHierarchy = "/sys/fs/cgroup/systemd";

struct Guardian {
  Identity identity;  // the guardian holds this lock as well, so it is recognised as running
  std::filesystem::path folder;
  pid_t pid = 0;
  Fd pidfd;
  Fd word;
};

std::mutex g_mutex;
bool g_allowed = false;
bool g_tried = false;
std::optional<Guardian> g_guardian;

bool readable(int fd, std::int64_t timeout_ns) {
  const std::int64_t until = monotonic_ns() + timeout_ns;
  for (;;) {
    const std::int64_t left = std::max<std::int64_t>(until - monotonic_ns(), 0);
    pollfd one{fd, POLLIN, 0};
    const timespec ts{left / kSecond, left % kSecond};
    const int n = ::ppoll(&one, 1, &ts, nullptr);
    if (n > 0) return true;
    if (n == 0) return false;
    if (errno != EINTR) return false;
  }
}

bool write_word(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const bool written = ::write(fd, text, static_cast<std::size_t>(size)) == size;
  ::close(fd);
  return written;
}

// Between fork and execve only system calls are safe, because other threads of rose may have held locks.
[[noreturn]] void become_guardian(const std::array<int, 3>& handed, char* const* argv) {
  ::setsid();
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU})
    ::sigaction(number, &ignored, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::array<int, 3> high{};
  for (std::size_t i = 0; i < handed.size(); ++i) high[i] = ::fcntl(handed[i], F_DUPFD_CLOEXEC, 64);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  for (std::size_t i = 0; i < high.size(); ++i)
    if (::dup2(high[i], kRoseFd + static_cast<int>(i)) < 0) ::_exit(127);
  ::close_range(kFirstOther, ~0U, 0);
  if (::chdir("/") != 0) ::_exit(127);
  // rose may be killed when memory is short; the guardian must survive to undo its changes.
  (void)write_word("/proc/self/oom_score_adj", "-1000");
  ::execve("/proc/self/exe", argv, environ);
  ::_exit(127);
}

Result<Guardian> start() {
  ROSE_TRY(Identity identity, Identity::create());
  Guardian made{std::move(identity), {}, 0, {}, {}};
  // Noted in advance, so that heal() removes the folder if rose and the guardian are both killed.
  if (const auto base = cgroup::base()) {
    made.folder = *base / made.identity.id();
    ROSE_CHECK(made.identity.note("cgroup", made.folder.string()));
    if (!cgroup::make(made.folder)) made.folder.clear();
  }
  Fd self = kernel::open_pidfd(::getpid());
  if (!self) return fail_errno(ErrorKind::environment, "pidfd_open", errno);
  int words[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, words) != 0)
    return fail_errno(ErrorKind::environment, "socketpair", errno);
  made.word = Fd(words[0]);
  Fd other(words[1]);
  std::string owner = std::to_string(::getpid());
  std::string id = made.identity.id();
  std::string name = kName;
  std::string command = kGuardianCommand;
  char* argv[] = {name.data(), command.data(), owner.data(), id.data(), nullptr};
  const std::array<int, 3> handed{self.get(), other.get(), made.identity.fd()};
  made.pid = ::fork();
  if (made.pid < 0) return fail_errno(ErrorKind::environment, "fork", errno);
  if (made.pid == 0) become_guardian(handed, argv);
  made.pidfd = kernel::open_pidfd(made.pid);
  other.reset();
  const std::string pid = std::to_string(made.pid);
  if (!made.folder.empty()) (void)write_word((made.folder / "cgroup.procs").c_str(), pid.c_str());
  (void)write_word(fmt::format("{}/cgroup.procs", kSystemdHierarchy).c_str(), pid.c_str());
  if (const auto stat = kernel::process_stat(made.pid))
    ROSE_CHECK(made.identity.note(kHealerNote, fmt::format("{} {}", made.pid, stat->start_ticks)));
  char word = 0;
  if (!readable(made.word.get(), kStarts) || ::recv(made.word.get(), &word, 1, MSG_DONTWAIT) != 1 || word != kReady) {
    ::kill(made.pid, SIGKILL);
    ::waitpid(made.pid, nullptr, 0);
    if (!made.folder.empty()) (void)cgroup::destroy(made.folder);
    return fail(ErrorKind::environment, "the guardian did not start");
  }
  return made;
}

// Moves this process out of its cgroup folder, so that the folder can be removed.
bool leave_folder(const std::filesystem::path& folder) {
  const std::string self = std::to_string(::getpid());
  const auto top = kernel::cgroup2_mount();
  if (!write_word((folder.parent_path() / "cgroup.procs").c_str(), self.c_str()) &&
      !(top && write_word((*top / "cgroup.procs").c_str(), self.c_str())))
    return false;
  return cgroup::destroy(folder).has_value();
}

void tell(const Healed& healed, const std::string& owner) {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) <= 0 || (out.revents & POLLOUT) == 0)
    return;  // nobody reads stderr, and writing must not block
  for (const std::string& line : healed.undone) log::warning("rose {} has died: {}", owner, line);
  for (const std::string& line : healed.failed)
    log::warning("rose {} has died, and 'rose heal' must try again: {}", owner, line);
}

// Waits for the guardian, which has ended or is about to, and removes what belongs to it.
void forget_guardian() {
  ::waitpid(g_guardian->pid, nullptr, 0);
  if (!g_guardian->folder.empty())
    if (auto removed = cgroup::destroy(g_guardian->folder); !removed) {
      log::warning("{}; 'rose heal' removes it", removed.error().message);
      g_guardian->identity.leave();
    }
  g_guardian.reset();
}

}  // namespace

void allow_guardian() { g_allowed = true; }

void ensure_guardian() {
  const std::lock_guard lock(g_mutex);
  if (g_guardian && g_guardian->pidfd && readable(g_guardian->pidfd.get(), 0)) {
    log::warning("the guardian was ended by somebody else; another one is started");
    forget_guardian();
    g_tried = false;
  }
  if (!g_allowed || std::exchange(g_tried, true)) return;
  if (auto made = start()) g_guardian.emplace(std::move(*made));
  else
    log::warning("there is no guardian ({}): when rose is killed, 'rose heal' undoes what it left",
                 made.error().message);
}

void dismiss_guardian() {
  const std::lock_guard lock(g_mutex);
  if (!g_guardian) return;
  Guardian& it = *g_guardian;
  [[maybe_unused]] const ssize_t sent = ::send(it.word.get(), &kDismissed, 1, MSG_NOSIGNAL);
  if (it.pidfd && !readable(it.pidfd.get(), kEnds)) (void)kernel::pidfd_signal(it.pidfd.get(), SIGKILL);
  forget_guardian();
}

Result<int> run_guardian(int argc, char** argv) {
  pid_t owner = 0;
  if (argc == 4) std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), owner);
  const auto is_pidfd = read_file(fmt::format("/proc/self/fdinfo/{}", int{kRoseFd}));
  if (owner <= 0 || !is_pidfd || is_pidfd->find("\nPid:") == std::string::npos)
    return fail(ErrorKind::usage, fmt::format("'{}' is not a command: rose starts it itself", kGuardianCommand));
  for (int fd = kRoseFd; fd < kFirstOther; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (const auto current = ::getpriority(PRIO_PROCESS, 0); current > -5) ::setpriority(PRIO_PROCESS, 0, -5);
  [[maybe_unused]] const ssize_t sent = ::send(kWordFd, &kReady, 1, MSG_NOSIGNAL);
  pollfd watched[] = {{kRoseFd, POLLIN, 0}, {kWordFd, POLLIN, 0}};
  while (watched[0].revents == 0) {
    if (::poll(watched, 2, -1) < 0) continue;
    char word = 0;
    if (watched[1].revents == 0) continue;
    if (::recv(kWordFd, &word, 1, MSG_DONTWAIT) == 1 && word == kDismissed) return 0;
    watched[1].fd = -1;  // its other end is closed; rose is about to end
  }
  const Healed healed = relieve_after(owner, argv[3]);
  for (const auto& own : registrations(argv[3]))
    for (const std::string& folder : own.all("cgroup"))
      if (std::filesystem::path(folder).filename() != own.id || !leave_folder(folder)) {
        tell(healed, argv[2]);
        return 0;  // heal() removes the folder
      }
  ::unlink(fmt::format("{}/{}.lock", kLockFolder, argv[3]).c_str());
  tell(healed, argv[2]);
  return 0;
}

}  // namespace rose::deploy
