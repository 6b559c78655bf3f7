#include "inject/exec_socket.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
#include <thread>

#include "base/log.h"
#include "base/relax.h"
#include "base/text.h"
#include "base/unix_socket.h"
#include "deploy/environment.h"
#include "deploy/launch.h"
#include "deploy/machine/processes.h"
#include "kernel/syscalls.h"

namespace rose::inject {
namespace {

constexpr std::uint32_t kMagic = 0x78736f72;  // "rosx"
constexpr std::uint32_t kVersion = 2;

struct Request {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  char node[72] = {};
};

enum class Answer : std::uint32_t { filter, nothing, refused };

struct Reply {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  Answer answer = Answer::refused;
  std::uint32_t count = 0;
  std::uint16_t syscalls[kernel::kMostSyscalls] = {};
  char text[256] = {};
};

template <typename T>
bool send_packet(int socket, const T& packet) {
  return ::send(socket, &packet, sizeof packet, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof packet);
}

template <typename T>
bool receive_packet(int socket, T& packet) {
  ssize_t got = 0;
  do got = ::recv(socket, &packet, sizeof packet, 0);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof packet) && packet.magic == kMagic;
}

void limit_waiting(int socket) {
  const timeval limit{10, 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  (void)::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// The run's end

class ListeningSocket final : public ExecSocket {
 public:
  ListeningSocket(std::filesystem::path path, Fd socket, Host host)
      : path_(std::move(path)), socket_(std::move(socket)), stop_(::eventfd(0, EFD_CLOEXEC)), host_(std::move(host)) {
    thread_ = std::thread([this] { run(); });
  }
  ~ListeningSocket() override { close(); }

  void close() override {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
    socket_.reset();
    ::unlink(path_.c_str());
  }

 private:
  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (;;) {
      pollfd watched[2] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      if (::poll(watched, 2, -1) < 0 && errno != EINTR) return;
      if (watched[1].revents != 0) return;
      if (watched[0].revents == 0) continue;
      Fd visitor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (visitor && admit(visitor.get())) inside_.push_back(std::move(visitor));
    }
  }

  bool admit(int visitor) {
    limit_waiting(visitor);
    ucred peer{};
    socklen_t size = sizeof peer;
    Request request;
    if (::getsockopt(visitor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || !receive_packet(visitor, request))
      return false;
    request.node[sizeof request.node - 1] = '\0';
    const std::string name = request.node;
    const auto at = std::find(host_.nodes.begin(), host_.nodes.end(), name);
    const auto node = static_cast<std::size_t>(at - host_.nodes.begin());
    Reply reply;
    if (request.version != kVersion) {
      refuse(reply, fmt::format("'rose exec' has version {}, this run {}", request.version, kVersion));
    } else if (at == host_.nodes.end()) {
      auto hint = did_you_mean(name, host_.nodes);
      refuse(reply, fmt::format("the deployment has no node '{}'{}{}", name, hint.empty() ? "" : ", ", hint));
    } else if (host_.syscalls[node].empty()) {
      reply.answer = Answer::nothing;
    } else {
      reply.answer = Answer::filter;
      for (const int number : host_.syscalls[node]) reply.syscalls[reply.count++] = static_cast<std::uint16_t>(number);
    }
    if (!send_packet(visitor, reply) || reply.answer != Answer::filter) return false;
    Fd listener = receive_descriptor(visitor, kMagic);
    if (!listener) {
      log::warning("'rose exec --node {}' (process {}) ended before it installed its filter", name, peer.pid);
      return false;
    }
    auto ledger = Ledger::create();
    if (!ledger) log::warning("{}", ledger.error().message);
    const std::shared_ptr<Ledger> shared = ledger ? std::move(*ledger) : nullptr;
    host_.on_listener(node, peer.pid, std::move(listener), shared);
    log::debug("process {} of node '{}' was admitted through 'rose exec'", peer.pid, name);
    // Even without a ledger, the command is admitted. The keeper then gets another descriptor in its place, which it
    // ignores, and does not know which calls rose had received.
    return send_packet(visitor, reply) && send_descriptor(visitor, shared ? shared->fd() : socket_.get(), kMagic);
  }

  static void refuse(Reply& reply, const std::string& text) {
    reply.answer = Answer::refused;
    std::strncpy(reply.text, text.c_str(), sizeof reply.text - 1);
  }

  std::filesystem::path path_;
  Fd socket_, stop_;
  Host host_;
  std::list<Fd> inside_;  // connections to keepers; a keeper takes over when its connection is closed
  std::thread thread_;
};

// The command's end

// Memory through which the command and its keeper synchronise. Between installing the filter and execve, the command
// must not make any system call, because the filter could notify rose of that call.
struct Meeting {
  std::uint32_t state;
  std::int32_t listener;
};
constexpr std::uint32_t kNone = 0, kHave = 1, kGo = 2, kGone = 3;

void continue_call(int listener, std::uint64_t id) {
  seccomp_notif_resp response{};
  response.id = id;
  response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  while (::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0 && errno == EINTR) {
  }
}

// Lets all calls continue after rose has ended, beginning with those that rose had received but not answered. The
// kernel assigns consecutive ids (seccomp_next_notify_id), so the ids of these calls lie between the two ids in the
// ledger, or just behind them if rose could not record the last calls.
void continue_all(int listener, const LedgerPage* ledger) {
  constexpr std::uint64_t kMostIds = std::uint64_t{1} << 24;
  constexpr std::uint64_t kUnwritten = 16;
  if (const std::uint64_t newest = __atomic_load_n(&ledger->newest, __ATOMIC_ACQUIRE); newest != 0) {
    const std::uint64_t oldest = __atomic_load_n(&ledger->oldest, __ATOMIC_ACQUIRE);
    const std::uint64_t end = newest + kUnwritten;
    const std::uint64_t begin = oldest == 0 ? newest : end - oldest > kMostIds ? end - kMostIds : oldest;
    for (std::uint64_t id = begin; id != end; ++id) continue_call(listener, id);
  }
  for (;;) {
    pollfd watched{listener, POLLIN, 0};
    if (::poll(&watched, 1, -1) < 0 && errno != EINTR) return;
    if ((watched.revents & POLLIN) == 0) {
      if ((watched.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return;
      continue;
    }
    seccomp_notif request{};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) continue;
    continue_call(listener, request.id);
  }
}

[[noreturn]] void keep(Meeting* meeting, int socket, pid_t entering) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  ::setsid();
  ::prctl(PR_SET_NAME, deploy::kExecKeeper);
  while (__atomic_load_n(&meeting->state, __ATOMIC_ACQUIRE) == kNone) {
    if (::kill(entering, 0) != 0) ::_exit(0);
    ::usleep(200);
  }
  if (__atomic_load_n(&meeting->state, __ATOMIC_ACQUIRE) == kGone) ::_exit(0);
  const int listener = meeting->listener;
  // Until now, the keeper shared the command's descriptor table, and so it got the listener. From now on, it must not
  // keep the command's other descriptors open.
  ::unshare(CLONE_FILES);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  const int low = std::min(socket, listener), high = std::max(socket, listener);
  if (low > 3) ::syscall(SYS_close_range, 3U, static_cast<unsigned>(low - 1), 0U);
  if (high > low + 1) ::syscall(SYS_close_range, static_cast<unsigned>(low + 1), static_cast<unsigned>(high - 1), 0U);
  ::syscall(SYS_close_range, static_cast<unsigned>(high + 1), ~0U, 0U);
  (void)::chdir("/");
  Reply reply;
  const bool handed =
      send_descriptor(socket, listener, kMagic) && receive_packet(socket, reply) && reply.answer == Answer::filter;
  const Fd shared = handed ? receive_descriptor(socket, kMagic) : Fd();
  const LedgerPage none;
  void* page = MAP_FAILED;
  if (struct stat info{};
      shared && ::fstat(shared.get(), &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(LedgerPage)))
    page = ::mmap(nullptr, sizeof(LedgerPage), PROT_READ, MAP_SHARED, shared.get(), 0);
  const auto* ledger = page == MAP_FAILED ? &none : static_cast<const LedgerPage*>(page);
  __atomic_store_n(&meeting->state, kGo, __ATOMIC_RELEASE);
  while (handed) {
    pollfd watched[2] = {{socket, POLLIN, 0}, {listener, 0, 0}};
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) break;
    if ((watched[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) ::_exit(0);
    char byte;
    if (watched[0].revents != 0 && ::recv(socket, &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN) break;
  }
  continue_all(listener, ledger);
  ::_exit(0);
}

long install(const std::vector<int>& syscalls) {
  std::vector<sock_filter> program = deploy::notify_filter(syscalls);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  const unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  long listener = -1;
  for (const bool unprivileged : {false, true}) {
    // Without CAP_SYS_ADMIN, as in some containers, a filter requires no_new_privs. A side effect is that the command
    // cannot gain privileges through set-user-id programs.
    if (unprivileged && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) break;
    listener = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
    if (listener < 0 && errno == EINVAL) listener = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
    if (listener >= 0 || errno != EACCES) break;
  }
  return listener;
}

Error errno_error(ErrorKind kind, std::string_view what, int err) {
  return Error{kind, fmt::format("{}: {}", what, std::strerror(err)), ""};
}

Error execute(const std::string& file, const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execve(file.c_str(), words.data(), environ);
  return errno_error(ErrorKind::input, fmt::format("cannot execute {}", file), errno);
}

}  // namespace

Result<std::unique_ptr<ExecSocket>> ExecSocket::open(const std::filesystem::path& socket, Host host) {
  ROSE_TRY(const UnixAddress address, unix_address(socket));
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  // bind() creates the file with the mode of the socket.
  if (!fd || ::fchmod(fd.get(), 0600) != 0 || ::bind(fd.get(), address.get(), address.size()) != 0 ||
      ::listen(fd.get(), 64) != 0) {
    return fail_errno(ErrorKind::environment, fmt::format("cannot listen at {}", socket.string()), errno);
  }
  return std::make_unique<ListeningSocket>(socket, std::move(fd), std::move(host));
}

Error enter(const std::filesystem::path& path, const std::string& node, const std::vector<std::string>& argv) {
  std::error_code ignored;
  auto file =
      deploy::find_program(argv.front(), std::filesystem::current_path(ignored), deploy::inherited(), "rose exec");
  if (!file) return std::move(file).error();
  if (path.empty()) return execute(*file, argv);
  // There is no run, or the run has ended, so execute the command unchanged.
  if (::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return execute(*file, argv);
  auto address = unix_address(path);
  if (!address) return std::move(address).error();
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error(ErrorKind::environment, "cannot create a socket", errno);
  if (::connect(socket.get(), address->get(), address->size()) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return execute(*file, argv);
    return errno_error(ErrorKind::environment, fmt::format("cannot reach the run at {}", path.string()), errno);
  }
  limit_waiting(socket.get());
  Request request;
  if (node.size() >= sizeof request.node)
    return Error{ErrorKind::usage, fmt::format("'{}' is not a node's name", node), ""};
  std::memcpy(request.node, node.c_str(), node.size());
  auto reply = std::make_unique<Reply>();
  if (!send_packet(socket.get(), request) || !receive_packet(socket.get(), *reply)) {
    return errno_error(ErrorKind::environment, fmt::format("the run at {} does not respond", path.string()), errno);
  }
  if (reply->answer == Answer::refused) {
    reply->text[sizeof reply->text - 1] = '\0';
    return Error{ErrorKind::input, reply->text, ""};
  }
  if (reply->answer == Answer::nothing) {
    socket.reset();
    return execute(*file, argv);
  }
  const auto count = std::min<std::size_t>(reply->count, std::size(reply->syscalls));
  const std::vector<int> syscalls(reply->syscalls, reply->syscalls + count);

  void* page = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno_error(ErrorKind::environment, "cannot map memory", errno);
  auto* meeting = static_cast<Meeting*>(page);
  const pid_t self = ::getpid();
  // Fork twice, so that the keeper is not a child of the command, which does not expect this child.
  const long between = ::syscall(SYS_clone, CLONE_FILES | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (between == 0) {
    const long keeper = ::syscall(SYS_clone, CLONE_FILES, nullptr, nullptr, nullptr, nullptr);
    if (keeper == 0) keep(meeting, socket.get(), self);
    ::_exit(keeper < 0 ? 1 : 0);
  }
  int status = 0;
  if (between < 0 || ::waitpid(static_cast<pid_t>(between), &status, 0) < 0 || status != 0) {
    return errno_error(ErrorKind::environment, "cannot start the keeper of the filter", errno);
  }
  const long listener = install(syscalls);
  if (listener < 0) {
    const int err = errno;
    __atomic_store_n(&meeting->state, kGone, __ATOMIC_RELEASE);
    return errno_error(ErrorKind::environment, "cannot install a seccomp filter with a listener", err);
  }
  meeting->listener = static_cast<std::int32_t>(listener);
  __atomic_store_n(&meeting->state, kHave, __ATOMIC_RELEASE);
  // Wait until the keeper is ready, because without it calls would hang once rose has ended. The limit is some minutes.
  // It is a number of iterations, so that time in which the process is frozen does not count.
  for (std::uint64_t spins = std::uint64_t{1} << 33; __atomic_load_n(&meeting->state, __ATOMIC_ACQUIRE) != kGo;) {
    relax();
    if (--spins == 0) __builtin_trap();
  }
  return execute(*file, argv);
}

}  // namespace rose::inject
