#include "inject/file_taker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/log.h"
#include "base/unix_socket.h"
#include "kernel/processes.h"

namespace rose::inject {
namespace {

constexpr unsigned kPidfdThread = O_EXCL;  // PIDFD_THREAD, Linux 6.9
constexpr int kTakerSocket = 3;            // the child's only descriptor besides 0 to 2
constexpr std::size_t kMostLeft = 8;
constexpr std::size_t kMostMountBytes = std::size_t{16} << 20;
constexpr std::size_t kMostInfoBytes = 4096;
constexpr timeval kTakerPatience{5, 0};

struct TakerRequest {
  pid_t tid = 0, tgid = 0;
  int fd = -1;
};

// True if the process `in` has a mount with this id.
bool has_mount(std::string_view in, std::string_view number) {
  const auto mounts = read_file(fmt::format("/proc/{}/mountinfo", in), kMostMountBytes);
  if (!mounts) return false;
  const std::string begin = fmt::format("{} ", number);
  return mounts->starts_with(begin) || mounts->find("\n" + begin) != std::string::npos;
}

Fd duplicate_of(const TakerRequest& request, int& err) {
  const auto get = [&](const Fd& pidfd) {
    Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), request.fd, 0)));
    err = copy ? 0 : -errno;
    return copy;
  };
  // Prefer the descriptor table of the thread, which may differ from that of its process. Older kernels support only
  // processes.
  if (const Fd thread(static_cast<int>(::syscall(SYS_pidfd_open, request.tid, kPidfdThread))); thread)
    return get(thread);
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, request.tgid, 0)));
  if (process) return get(process);
  err = -errno;
  return {};
}

std::string target_of(int fd) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target.data(), target.size());
  return {target.data(), size < 0 ? 0 : static_cast<std::size_t>(size)};
}

[[noreturn]] void serve_takes() {
  for (;;) {
    TakerRequest request;
    const ssize_t got = ::recv(kTakerSocket, &request, sizeof request, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof request)) ::_exit(0);  // rose has ended, or has left this child behind
    int err = 0;
    const Fd copy = duplicate_of(request, err);
    const std::string path = copy ? target_of(copy.get()) : std::string();
    const bool answers = copy && !path.empty() && file_answers("self", copy.get(), path, request.tid);
    if (copy && !answers) err = -EXDEV;
    const int fd = copy.get();
    const std::string_view answer(reinterpret_cast<const char*>(&err), sizeof err);
    const auto sent = send_with_descriptors(kTakerSocket, answer, {&fd, answers ? std::size_t{1} : 0});
    if (sent != static_cast<ssize_t>(sizeof err)) ::_exit(1);
  }
}

// Children that were left behind with a file and had not ended when their FileTaker was destroyed.
std::mutex abandoned_mutex;
std::vector<pid_t> abandoned;

void reap(std::vector<pid_t>& children) {
  std::erase_if(children, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace

bool file_answers(std::string_view of, int fd, std::string_view path, pid_t tid) {
  if (path.starts_with("socket:[") || path.starts_with("pipe:[")) return true;
  if (!path.starts_with('/')) return false;
  const std::string info = read_file(fmt::format("/proc/{}/fdinfo/{}", of, fd), kMostInfoBytes).value_or("");
  constexpr std::string_view kKey = "mnt_id:\t";
  const std::size_t at = info.find(kKey);
  if (at == std::string::npos) return info.empty();  // no text: the descriptor was closed meanwhile
  const std::size_t begin = at + kKey.size();
  const std::string number = info.substr(begin, info.find('\n', begin) - begin);
  return has_mount("self", number) || (kernel::trusts_mounts_of(tid) && has_mount(std::to_string(tid), number));
}

FileTaker::~FileTaker() {
  if (pid_ != 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  reap(left_);
  const std::lock_guard lock(abandoned_mutex);
  reap(abandoned);
  abandoned.insert(abandoned.end(), left_.begin(), left_.end());
}

Fd FileTaker::take(pid_t tid, pid_t tgid, int fd, int& err) {
  const std::lock_guard lock(mutex_);
  if (!socket_ && !start()) {
    err = -EXDEV;
    return {};
  }
  const TakerRequest request{tid, tgid, fd};
  SentDescriptors sent;
  int answer = 0;
  ssize_t got = ::send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL);
  do {
    if (got > 0) got = receive_with_descriptors(socket_.get(), {reinterpret_cast<char*>(&answer), sizeof answer}, sent);
  } while (got < 0 && errno == EINTR);
  const bool answered = got == static_cast<ssize_t>(sizeof answer);
  // If the child reports success, it has sent a descriptor. If none has arrived, rose has reached its own limit of open
  // descriptors.
  err = answered && (answer != 0 || sent.count == 1) ? answer : -EXDEV;
  // The child now closes the file, which may block for ever, so the next request needs another child.
  if (err == -EXDEV) leave();
  return err == 0 && sent.count == 1 ? std::move(sent.fds[0]) : Fd();
}

bool FileTaker::start() {
  reap(left_);
  if (left_.size() >= kMostLeft) return false;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  (void)::setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &kTakerPatience, sizeof kTakerPatience);
  // Block all signals in the child, because Ctrl-C is for rose.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) {
    // rose's descriptors must not stay open in this child after rose has ended: an open listener would make its node
    // hang, and an open pipe would make its reader hang.
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < kTakerSocket; ++fd) ::dup2(nothing, fd);
    if (::dup2(theirs.get(), kTakerSocket) != kTakerSocket || ::syscall(SYS_close_range, kTakerSocket + 1, ~0U, 0) != 0)
      ::_exit(1);
    ::prctl(PR_SET_NAME, "rose-taker");
    serve_takes();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return false;
  socket_ = std::move(ours);
  pid_ = pid;
  return true;
}

void FileTaker::leave() {
  socket_.reset();
  if (pid_ == 0) return;
  left_.push_back(std::exchange(pid_, 0));
  if (left_.size() == kMostLeft)
    log::warning("a node exchanges its descriptors while rose looks at them: files and peers of its calls are unknown");
}

}  // namespace rose::inject
