#include "deploy/paced_file.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "kernel/processes.h"

#ifndef FOPEN_PARALLEL_DIRECT_WRITES
#define FOPEN_PARALLEL_DIRECT_WRITES (1 << 6)  // Linux 6.2
#endif

namespace rose::deploy {
namespace {

constexpr std::uint32_t kMostData = 1U << 20;  // per request
constexpr std::size_t kRequestBytes = kMostData + 64 * 1024;
constexpr std::size_t kMostPending = 4096;
constexpr std::uint16_t kMostBackground = 512;
constexpr int kLeaveMs = 2'000;  // time that the server has to end once the file is no longer in use
constexpr mode_t kFileMode = S_IFREG | 0600;

// The headers before a FUSE request's data.
constexpr std::size_t kWriteDataAt = sizeof(fuse_in_header) + sizeof(fuse_write_in);

std::uint64_t time_ns() { return static_cast<std::uint64_t>(monotonic_ns()); }

// Memory shared by the server and rose.
struct SharedPace {
  std::uint64_t rate, interval_ns, delay_ns;
  std::uint64_t requests, bytes;
};

template <typename T>
T load_word(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <typename T>
void store_word(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

// Answers the kernel's requests. Runs in a fork of a multithreaded process, so it must not allocate memory.
class PaceServer {
 public:
  static constexpr int kFuse = 3, kBacking = 4, kSocket = 5;

  PaceServer(SharedPace* shared, char* buffer) : shared_(shared), buffer_(buffer) {}

  [[noreturn]] void run() {
    for (;;) {
      const std::uint64_t next = answer_due();
      const std::uint64_t now = time_ns();
      const std::uint64_t left = next > now ? next - now : 0;
      const timespec limit{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
      pollfd watched[2] = {{kFuse, POLLIN, 0}, {alone_ ? -1 : kSocket, POLLIN, 0}};
      (void)::ppoll(watched, 2, pending_ == 0 ? nullptr : &limit, nullptr);
      if (watched[1].revents != 0) hear();
      if (watched[0].revents != 0) take();
    }
  }

 private:
  struct Pending {
    std::uint64_t due, unique, offset;
    std::uint32_t size;
    std::uint32_t opcode;
    int error;
  };

  // Handles a message on the socket: the pace has changed. If the socket is closed, rose has ended.
  void hear() {
    char bytes[64];
    const ssize_t got = ::recv(kSocket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0) alone_ = true;
    busy_until_ = 0;
    if (limited()) return;
    for (std::size_t i = 0; i < pending_; ++i) waiting_[i].due = 0;
  }

  [[nodiscard]] bool limited() const {
    return !alone_ && (load_word(shared_->rate) | load_word(shared_->interval_ns) | load_word(shared_->delay_ns)) != 0;
  }

  // Reads all pending requests.
  void take() {
    for (;;) {
      const ssize_t got = ::read(kFuse, buffer_, kRequestBytes);
      if (got < 0 && errno == ENODEV) ::_exit(0);  // the file is not open any more
      if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return;
      handle();
    }
  }

  void handle() {
    fuse_in_header head;
    std::memcpy(&head, buffer_, sizeof head);
    const char* body = buffer_ + sizeof head;
    switch (head.opcode) {
      case FUSE_INIT: {
        fuse_init_in in;
        std::memcpy(&in, body, sizeof in);
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_readahead = in.max_readahead;
        out.flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ASYNC_DIO | FUSE_MAX_PAGES;
        out.max_background = out.congestion_threshold = kMostBackground;
        out.max_write = kMostData;
        out.max_pages = kMostData / 4096;
        out.time_gran = 1;
        return answer(head.unique, 0, &out, sizeof out);
      }
      case FUSE_GETATTR: {
        struct stat info{};
        ::fstat(kBacking, &info);
        fuse_attr_out out{};
        out.attr_valid = 3600;
        out.attr.ino = FUSE_ROOT_ID;
        out.attr.size = static_cast<std::uint64_t>(info.st_size);
        out.attr.blocks = static_cast<std::uint64_t>(info.st_blocks);
        out.attr.mode = kFileMode;
        out.attr.nlink = 1;
        out.attr.blksize = 4096;
        return answer(head.unique, 0, &out, sizeof out);
      }
      case FUSE_OPEN: {
        fuse_open_out out{};
        out.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
        return answer(head.unique, 0, &out, sizeof out);
      }
      case FUSE_READ: {
        fuse_read_in in;
        std::memcpy(&in, body, sizeof in);
        return wait(head, in.offset, std::min(in.size, kMostData), 0);
      }
      case FUSE_WRITE: {
        fuse_write_in in;
        std::memcpy(&in, body, sizeof in);
        return wait(head, in.offset, in.size, write_all(in.offset, in.size));
      }
      case FUSE_FSYNC:
        // The data is in the backing file. It does not have to survive a crash of the machine, so nothing is synced.
        return wait(head, 0, 0, 0);
      case FUSE_RELEASE:
      case FUSE_DESTROY: return answer(head.unique, 0, nullptr, 0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT: return;
      default: return answer(head.unique, ENOSYS, nullptr, 0);
    }
  }

  int write_all(std::uint64_t offset, std::uint32_t size) {
    for (std::uint32_t done = 0; done < size;) {
      const ssize_t n =
          ::pwrite(kBacking, buffer_ + kWriteDataAt + done, size - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return n < 0 ? errno : EIO;
      done += static_cast<std::uint32_t>(n);
    }
    return 0;
  }

  void wait(const fuse_in_header& head, std::uint64_t offset, std::uint32_t size, int error) {
    Pending one{0, head.unique, offset, size, head.opcode, error};
    if (limited()) {
      const std::uint64_t now = time_ns(), rate = load_word(shared_->rate);
      busy_until_ = std::max(busy_until_, now) + load_word(shared_->interval_ns);
      if (rate != 0)
        busy_until_ += static_cast<std::uint64_t>(static_cast<double>(size) * 1e9 / static_cast<double>(rate));
      one.due = busy_until_ + load_word(shared_->delay_ns);
      __atomic_fetch_add(&shared_->requests, 1, __ATOMIC_RELAXED);
      __atomic_fetch_add(&shared_->bytes, size, __ATOMIC_RELAXED);
    }
    if (one.due == 0 || pending_ == kMostPending) return finish(one);
    waiting_[pending_++] = one;
  }

  // Sends the answers that are due. Returns the time at which the next one is due.
  std::uint64_t answer_due() {
    const std::uint64_t now = time_ns();
    std::uint64_t next = ~std::uint64_t{0};
    for (std::size_t i = 0; i < pending_;) {
      if (waiting_[i].due > now) {
        next = std::min(next, waiting_[i++].due);
        continue;
      }
      const Pending one = waiting_[i];
      waiting_[i] = waiting_[--pending_];
      finish(one);
    }
    return next;
  }

  void finish(const Pending& one) {
    if (one.opcode == FUSE_READ && one.error == 0) {
      const ssize_t got = ::pread(kBacking, buffer_, one.size, static_cast<off_t>(one.offset));
      return got < 0 ? answer(one.unique, errno, nullptr, 0)
                     : answer(one.unique, 0, buffer_, static_cast<std::size_t>(got));
    }
    const fuse_write_out out{one.size, 0};
    answer(one.unique, one.error, &out, one.opcode == FUSE_WRITE ? sizeof out : 0);
  }

  static void answer(std::uint64_t unique, int error, const void* data, std::size_t size) {
    if (error != 0) size = 0;
    fuse_out_header head{static_cast<std::uint32_t>(sizeof head + size), -error, unique};
    const iovec parts[2] = {{&head, sizeof head}, {const_cast<void*>(data), size}};
    [[maybe_unused]] const auto written = ::writev(kFuse, parts, size > 0 ? 2 : 1);
  }

  SharedPace* shared_;
  char* buffer_;
  bool alone_ = false;
  std::uint64_t busy_until_ = 0;
  std::size_t pending_ = 0;
  Pending waiting_[kMostPending];
};

// Main function of the child. Inherited descriptors must be closed, or they would outlive rose.
[[noreturn]] void serve(PaceServer& server, int fuse, int backing, int socket) {
  constexpr int kAside = 64;
  const int own[3] = {::fcntl(fuse, F_DUPFD, kAside), ::fcntl(backing, F_DUPFD, kAside),
                      ::fcntl(socket, F_DUPFD, kAside)};
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd)
    if (null < 0 || ::dup2(null, fd) != fd || own[fd] < 0 || ::dup2(own[fd], PaceServer::kFuse + fd) < 0) ::_exit(1);
  if (::syscall(SYS_close_range, PaceServer::kSocket + 1, ~0U, 0) != 0 || ::chdir("/") != 0) ::_exit(1);
  ::prctl(PR_SET_NAME, "rose-disk");
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  // With this flag, which needs CAP_SYS_RESOURCE, the kernel never makes this process wait for the disk that it serves.
  ::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
  ::setsid();
  server.run();
}

}  // namespace

struct PacedFile::Shared : SharedPace {
  alignas(PaceServer) char server[sizeof(PaceServer)];
  char buffer[kRequestBytes];
};

Result<std::unique_ptr<PacedFile>> PacedFile::make(const std::filesystem::path& point, int backing) {
  const auto failed = [](std::string_view what) { return fail_errno(ErrorKind::environment, what, errno); };
  std::unique_ptr<PacedFile> paced(new PacedFile);
  void* shared = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return failed("no memory for a slow disk");
  paced->shared_ = static_cast<Shared*>(shared);
  Fd fuse(::open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fuse) return failed("cannot open /dev/fuse");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed("no socket for a slow disk");
  paced->socket_ = Fd(ends[0]);
  const Fd theirs(ends[1]);
  if (const Fd file(::open(point.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)); !file)
    return failed(fmt::format("cannot create {}", point.string()));
  const std::string options =
      fmt::format("fd={},rootmode={:o},user_id={},group_id={}", fuse.get(), kFileMode, ::geteuid(), ::getegid());
  if (::mount("rose-disk", point.c_str(), "fuse.rose", MS_NOSUID | MS_NODEV | MS_NOEXEC, options.c_str()) != 0) {
    const int error = errno;
    ::unlink(point.c_str());
    return fail_errno(ErrorKind::environment, "cannot mount a FUSE file", error);
  }
  auto* server = new (paced->shared_->server) PaceServer(paced->shared_, paced->shared_->buffer);
  // Blocks all signals in the child, because Ctrl-C is for rose.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  paced->pid_ = ::fork();
  if (paced->pid_ == 0) serve(*server, fuse.get(), backing, theirs.get());
  const int forked = paced->pid_ < 0 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  fuse.reset();  // only the server has it open now, so the kernel notices immediately if the server dies
  int opened = forked;
  if (forked == 0) {
    paced->file_ = Fd(::open(point.c_str(), O_RDWR | O_CLOEXEC));
    // Newer kernels ask for the size on demand. On older kernels, loop devices use the cached size, so request it now.
    struct stat info{};
    opened = paced->file_ && ::fstat(paced->file_.get(), &info) == 0 ? 0 : errno;
  }
  // The file is used only through its descriptor, so its name is removed now and nothing is left after a kill.
  (void)::umount2(point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  ::unlink(point.c_str());
  if (opened != 0)
    return fail_errno(ErrorKind::environment,
                      forked != 0 ? "cannot start the server for a slow disk" : "cannot open a FUSE file", opened);
  return paced;
}

PacedFile::~PacedFile() {
  file_.reset();
  socket_.reset();
  if (pid_ > 0) {
    const Fd ended = kernel::open_pidfd(pid_);
    pollfd watched{ended.get(), POLLIN, 0};
    // If another process has the file open, the server does not end in this time, but by itself later.
    if (ended && ::poll(&watched, 1, kLeaveMs) == 1) (void)::waitpid(pid_, nullptr, 0);
  }
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

void PacedFile::set(const Pace& pace) {
  store_word(shared_->rate, pace.rate);
  store_word(shared_->interval_ns, pace.iops > 0 ? static_cast<std::uint64_t>(1e9 / pace.iops) : 0);
  store_word(shared_->delay_ns, static_cast<std::uint64_t>(pace.delay_ns));
  (void)::send(socket_.get(), "", 1, MSG_NOSIGNAL);
}

PacedFile::Counters PacedFile::counters() const { return {load_word(shared_->requests), load_word(shared_->bytes)}; }

Result<void> PacedFile::check() {
  const auto lacks = [](const std::string& what) {
    return fail(ErrorKind::environment, what,
                "a slow disk is a file that rose serves to the kernel: the kernel module fuse and /dev/fuse are needed "
                "(modprobe fuse; in a container: --device /dev/fuse, or --privileged)");
  };
  char name[] = "/tmp/rose-pace-XXXXXX";
  if (::mkdtemp(name) == nullptr) return fail_errno(ErrorKind::environment, "cannot create a folder in /tmp", errno);
  const Fd backing(static_cast<int>(::memfd_create("rose-pace", MFD_CLOEXEC)));
  const auto tried = [&]() -> Result<void> {
    if (!backing || ::pwrite(backing.get(), "rose", 4, 0) != 4)
      return fail_errno(ErrorKind::environment, "no memory for a file", errno);
    ROSE_TRY(const auto paced, make(std::filesystem::path(name) / "file", backing.get()));
    paced->set({.rate = 0, .iops = 0, .delay_ns = 1'000'000});
    const std::int64_t began = monotonic_ns();
    char text[4] = {};
    if (::pread(paced->fd(), text, 4, 0) != 4 || std::memcmp(text, "rose", 4) != 0)
      return fail_errno(ErrorKind::environment, "a FUSE file cannot be read", errno);
    if (monotonic_ns() - began < 1'000'000) return fail(ErrorKind::environment, "a FUSE file was read too early");
    return {};
  }();
  ::rmdir(name);
  if (!tried) return lacks(tried.error().message);
  return {};
}

}  // namespace rose::deploy
