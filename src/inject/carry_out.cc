#include "inject/carry_out.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>

#include "inject/caller.h"
#include "kernel/processes.h"

namespace rose::inject {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // limit for data copied for one call
// The limit for pipes and sockets is lower, because many calls on them may wait at once.
constexpr std::uint64_t kMostBytesWaiting = std::uint64_t{8} << 20;
constexpr unsigned kMemoryDevices = 1;  // major number of /dev/null, /dev/zero, /dev/random, ...

// True for files whose content, or the effect of writing to them, depends on the process that reads or writes. For
// example, "0" in cgroup.procs moves the writer, and some files in /proc show a process only to itself.
bool depends_on_caller(int fd) {
  constexpr std::array<unsigned long, 10> kKernels = {
      PROC_SUPER_MAGIC, SYSFS_MAGIC,      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
      TRACEFS_MAGIC,    SECURITYFS_MAGIC, SELINUX_MAGIC,      BPF_FS_MAGIC,        BINFMTFS_MAGIC};
  struct statfs system{};
  return ::fstatfs(fd, &system) != 0 ||
         std::find(kKernels.begin(), kKernels.end(), static_cast<unsigned long>(system.f_type)) != kKernels.end();
}

std::int64_t result_of(std::int64_t value) { return value < 0 ? -errno : value; }

bool wait_ready(int fd, short events, const std::function<bool()>& alive) {
  for (;;) {
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, 20);
    if (ready > 0) return true;
    if (!alive()) return false;
  }
}

// Copies the bytes that an iovec array of the thread refers to.
bool gather(const NotifiedCall& call, std::uint64_t iov, std::uint64_t count, std::int64_t most, std::uint64_t room,
            std::string& data) {
  if (count > IOV_MAX) return false;
  const auto raw = call.read_memory(iov, count * sizeof(iovec));
  if (raw.size() != count * sizeof(iovec)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    iovec part{};
    std::memcpy(&part, raw.data() + i * sizeof part, sizeof part);
    std::uint64_t want = std::min<std::uint64_t>(part.iov_len, room - data.size());
    if (most >= 0) want = std::min<std::uint64_t>(want, static_cast<std::uint64_t>(most) - data.size());
    const auto got = call.read_memory(reinterpret_cast<std::uint64_t>(part.iov_base), want);
    data += got;
    if (got.size() != want) return false;
    if (most >= 0 && data.size() == static_cast<std::uint64_t>(most)) break;
  }
  return true;
}

}  // namespace

bool can_carry_out_partly(int number) {
  switch (number) {
    case SYS_read:
    case SYS_pread64:
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_sendto: return true;
    default: return false;
  }
}

bool can_carry_out(int number) {
  switch (number) {
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_sync_file_range:
    case SYS_lseek:
    case SYS_fchmod:
    case SYS_shutdown:
    case SYS_syncfs: return true;
    default: return can_carry_out_partly(number);
  }
}

std::optional<CarriedFile> carried_file(NotifiedCall& call) {
  CarriedFile file;
  file.fd = call.duplicate(static_cast<int>(call.argument(0)), file.error);
  // EBADF is the error that the thread's own call would return. Other errors occur only in rose, so the thread makes
  // the call itself.
  if (!file.fd) return file.error == -EBADF ? std::optional(std::move(file)) : std::nullopt;
  struct stat status{};
  if (::fstat(file.fd.get(), &status) != 0) return std::nullopt;
  file.quick = S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) || S_ISDIR(status.st_mode);
  if (file.quick && depends_on_caller(file.fd.get())) return std::nullopt;
  if (file.quick || S_ISFIFO(status.st_mode) || (S_ISCHR(status.st_mode) && major(status.st_rdev) == kMemoryDevices))
    return file;
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(file.fd.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return std::nullopt;
  file.unix_socket = domain == AF_UNIX;
  return file.unix_socket || domain == AF_INET || domain == AF_INET6 ? std::optional(std::move(file)) : std::nullopt;
}

namespace {

// While this object exists, a blocking call of this thread is interrupted (EINTR) every 10 ms. Otherwise, the thread
// could block for a long time: a descriptor that poll() reported as ready may no longer be ready when it is read,
// because another reader was faster. No flag makes reads of all kinds of files non-blocking.
class Interruptions {
 public:
  Interruptions() {
    static std::once_flag once;
    std::call_once(once, [] {
      struct sigaction action{};
      action.sa_handler = [](int) {};  // without SA_RESTART
      ::sigaction(number(), &action, nullptr);
    });
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, number());
    pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = number();
    event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
    constexpr long kPeriodNs = 10'000'000;
    const itimerspec period{{0, kPeriodNs}, {0, kPeriodNs}};
    made_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0 && ::timer_settime(timer_, 0, &period, nullptr) == 0;
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  ~Interruptions() {
    if (made_) ::timer_delete(timer_);
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, number());
    pthread_sigmask(SIG_BLOCK, &own, nullptr);
  }
  // If the timer could not be created, calls that may block are not started.
  [[nodiscard]] bool ok() const { return made_; }

 private:
  static int number() { return SIGRTMIN + 1; }
  timer_t timer_{};
  bool made_ = false;
};

// A call that is being carried out. run() first reads all of the caller's memory that the call needs, and then checks
// that the caller still waits in the call, so that the memory was that of the caller.
class CarriedCall {
 public:
  CarriedCall(NotifiedCall& call, const CarriedFile& file, std::int64_t most, const std::function<bool()>& alive)
      : call_(call), most_(most), alive_(alive), fd_(file.fd), may_wait_(!file.quick), unix_socket_(file.unix_socket) {}

  std::int64_t run() {
    if (const auto problem = take_arguments(); problem != 0) return problem;
    const auto rights = rights_of(call_.tid());
    const auto own = own_rights();
    if (!alive_() || !rights) return -EINTR;
    if (!own) return -EPERM;

    // A broken pipe must not end rose.
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    // Read the flag only once: the program may change it at any moment, and that must not change whether rose waits.
    gives_up_ = (::fcntl(fd_.get(), F_GETFL) & O_NONBLOCK) != 0;
    std::int64_t result = -EPERM;
    // The receiver on a Unix socket is informed which process and user sent the data. Without credentials in the
    // message, the receiver would see rose as the sender. To name another process, rose needs these capabilities.
    if (sends_to_unix()) sender_ = ucred{call_.tgid(), rights->uid, rights->gid};
    const std::uint64_t kept = sender_ ? bit(CAP_SYS_ADMIN) | bit(CAP_SETUID) | bit(CAP_SETGID) : 0;
    const auto act = [&] {
      if (const AsCaller caller(*rights, *own, kept); caller.ok()) result = carry();
    };
    // A path must be resolved in the caller's view: its folder, its root, its mounts.
    if (view_) return with_view(*view_, act) ? result : -EPERM;
    act();
    return reads() && result > 0 ? hand_over(result) : result;
  }

 private:
  [[nodiscard]] std::size_t limited(std::uint64_t size) const {
    return static_cast<std::size_t>(std::min({size, room(), most_ < 0 ? room() : static_cast<std::uint64_t>(most_)}));
  }
  [[nodiscard]] std::uint64_t room() const { return may_wait_ ? kMostBytesWaiting : kMostBytes; }
  [[nodiscard]] off_t offset(int index) const { return static_cast<off_t>(call_.argument(index)); }

  [[nodiscard]] bool reads() const { return call_.number() == SYS_read || call_.number() == SYS_pread64; }

  static std::uint64_t bit(int capability) { return std::uint64_t{1} << capability; }

  [[nodiscard]] bool sends_to_unix() const {
    switch (call_.number()) {
      case SYS_write:
      case SYS_writev:
      case SYS_sendto: return unix_socket_;
      default: return false;
    }
  }

  // Sends with the credentials of the caller's process.
  std::int64_t send_as_caller(const char* from, std::size_t left) {
    iovec part{const_cast<char*>(from), left};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(ucred))]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    if (address_size_ > 0) {
      message.msg_name = &address_;
      message.msg_namelen = address_size_;
    }
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_CREDENTIALS;
    head->cmsg_len = CMSG_LEN(sizeof(ucred));
    std::memcpy(CMSG_DATA(head), &*sender_, sizeof(ucred));
    const int flags = call_.number() == SYS_sendto ? static_cast<int>(call_.argument(3)) : 0;
    return result_of(::sendmsg(fd_.get(), &message, flags | MSG_NOSIGNAL | (may_wait_ ? MSG_DONTWAIT : 0)));
  }

  // Writes what was read to the caller's memory. At this point, this thread has rose's own rights again.
  std::int64_t hand_over(std::int64_t got) {
    return call_.write_memory(call_.argument(1), data_.data(), static_cast<std::size_t>(got), alive_) ? got : -EFAULT;
  }

  // Reads the arguments from the caller's memory. Returns 0, or the error with which the call fails (-errno).
  std::int64_t take_arguments() {
    switch (call_.number()) {
      case SYS_writev:
      case SYS_pwritev: return gather(call_, call_.argument(1), call_.argument(2), most_, room(), data_) ? 0 : -EFAULT;
      case SYS_write:
      case SYS_pwrite64:
      case SYS_sendto: {
        const auto want = limited(call_.argument(2));
        data_ = call_.read_memory(call_.argument(1), want);
        if (data_.size() != want) return -EFAULT;
        if (call_.number() != SYS_sendto || call_.argument(4) == 0) return 0;
        const auto raw =
            call_.read_memory(call_.argument(4), std::min<std::uint64_t>(call_.argument(5), sizeof address_));
        std::memcpy(&address_, raw.data(), raw.size());
        address_size_ = static_cast<socklen_t>(raw.size());
        const bool named = address_.ss_family == AF_UNIX && raw.size() > offsetof(sockaddr_un, sun_path) &&
                           raw[offsetof(sockaddr_un, sun_path)] != '\0';
        if (!named) return 0;
        if (!kernel::trusts_mounts_of(call_.tid())) return -EACCES;
        view_ = view_of(call_.tid());
        return view_ ? 0 : -EINTR;
      }
      default: return 0;
    }
  }

  std::int64_t carry() {
    switch (call_.number()) {
      case SYS_write:
      case SYS_pwrite64:
      case SYS_writev:
      case SYS_pwritev:
      case SYS_sendto: return write_all();
      case SYS_read:
      case SYS_pread64: return read_some();
      case SYS_fsync: return result_of(::fsync(fd_.get()));
      case SYS_fdatasync: return result_of(::fdatasync(fd_.get()));
      case SYS_syncfs: return result_of(::syncfs(fd_.get()));
      case SYS_ftruncate: return result_of(::ftruncate(fd_.get(), offset(1)));
      case SYS_fallocate:
        return result_of(::fallocate(fd_.get(), static_cast<int>(call_.argument(1)), offset(2), offset(3)));
      case SYS_sync_file_range:
        return result_of(::sync_file_range(fd_.get(), offset(1), offset(2), static_cast<unsigned>(call_.argument(3))));
      case SYS_lseek: return result_of(::lseek(fd_.get(), offset(1), static_cast<int>(call_.argument(2))));
      case SYS_fchmod: return result_of(::fchmod(fd_.get(), static_cast<mode_t>(call_.argument(1))));
      case SYS_shutdown: return result_of(::shutdown(fd_.get(), static_cast<int>(call_.argument(1))));
      default: return -ENOSYS;
    }
  }

  std::int64_t write_once(const char* from, std::size_t left, std::size_t done) {
    if (sender_) return send_as_caller(from, left);
    switch (call_.number()) {
      case SYS_pwrite64:
      case SYS_pwritev: return result_of(::pwrite(fd_.get(), from, left, offset(3) + static_cast<off_t>(done)));
      case SYS_sendto:
        return result_of(::sendto(fd_.get(), from, left,
                                  static_cast<int>(call_.argument(3)) | MSG_NOSIGNAL | (may_wait_ ? MSG_DONTWAIT : 0),
                                  address_size_ > 0 ? reinterpret_cast<sockaddr*>(&address_) : nullptr, address_size_));
      default: break;
    }
    const std::int64_t sent =
        may_wait_ ? result_of(::send(fd_.get(), from, left, MSG_DONTWAIT | MSG_NOSIGNAL)) : -ENOTSOCK;
    return sent == -ENOTSOCK ? result_of(::write(fd_.get(), from, left)) : sent;
  }

  std::int64_t write_all() {
    const auto interruptions = interrupted_when_waiting();
    if (may_wait_ && !interruptions->ok()) return -EAGAIN;
    std::size_t done = 0;
    do {
      if (may_wait_ && !gives_up_ && !wait_ready(fd_.get(), POLLOUT, alive_))
        return done > 0 ? static_cast<std::int64_t>(done) : -EINTR;
      const auto got = write_once(data_.data() + done, data_.size() - done, done);
      if (gives_up_ && got == -EINTR) return done > 0 ? static_cast<std::int64_t>(done) : -EAGAIN;
      if ((got == -EAGAIN || got == -EINTR) && may_wait_ && !gives_up_) continue;
      if (got < 0) return done > 0 ? static_cast<std::int64_t>(done) : got;
      done += static_cast<std::size_t>(got);
      if (got == 0) break;
    } while (may_wait_ && done < data_.size());
    return static_cast<std::int64_t>(done);
  }

  std::int64_t read_some() {
    const auto interruptions = interrupted_when_waiting();
    if (may_wait_ && !interruptions->ok()) return -EAGAIN;
    data_.resize(limited(call_.argument(2)));
    std::int64_t got = 0;
    do {
      if (may_wait_ && !gives_up_ && !wait_ready(fd_.get(), POLLIN, alive_)) return -EINTR;
      got = call_.number() == SYS_read ? result_of(::read(fd_.get(), data_.data(), data_.size()))
                                       : result_of(::pread(fd_.get(), data_.data(), data_.size(), offset(3)));
    } while (may_wait_ && !gives_up_ && (got == -EINTR || got == -EAGAIN));
    return gives_up_ && got == -EINTR ? -EAGAIN : got;
  }

  [[nodiscard]] std::unique_ptr<Interruptions> interrupted_when_waiting() const {
    return may_wait_ ? std::make_unique<Interruptions>() : nullptr;
  }

  NotifiedCall& call_;
  const std::int64_t most_;
  const std::function<bool()>& alive_;
  const Fd& fd_;
  std::string data_;
  sockaddr_storage address_{};
  socklen_t address_size_ = 0;
  std::optional<CallerView> view_;
  std::optional<ucred> sender_;
  const bool may_wait_, unix_socket_;
  bool gives_up_ = false;  // the descriptor is non-blocking: the call returns EAGAIN instead of waiting
};

}  // namespace

std::int64_t carry_out(NotifiedCall& call, const CarriedFile& file, std::int64_t most,
                       const std::function<bool()>& alive) {
  return file.fd ? CarriedCall(call, file, most, alive).run() : file.error;
}

bool was_cut(const NotifiedCall& call, std::int64_t most, std::int64_t done) {
  if (most < 0 || done != most) return false;
  const bool vector = call.number() == SYS_writev || call.number() == SYS_pwritev;
  return vector || call.argument(2) > static_cast<std::uint64_t>(most);
}

}  // namespace rose::inject
