#include "inject/carry_out.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

namespace rose::inject {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // of one call that we copy

std::int64_t result_of(std::int64_t value) { return value < 0 ? -errno : value; }

bool wait_ready(int fd, short events, const std::function<bool()>& alive) {
  for (;;) {
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, 20);
    if (ready > 0) return true;
    if (!alive()) return false;
  }
}

// The bytes that an iovec array of the thread's points to.
bool gather(const NotifiedCall& call, std::uint64_t iov, std::uint64_t count, std::int64_t most, std::string& data) {
  if (count > IOV_MAX) return false;
  const auto raw = call.read_memory(iov, count * sizeof(iovec));
  if (raw.size() != count * sizeof(iovec)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    iovec part{};
    std::memcpy(&part, raw.data() + i * sizeof part, sizeof part);
    std::uint64_t want = std::min<std::uint64_t>(part.iov_len, kMostBytes - data.size());
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
    case SYS_read: case SYS_pread64: case SYS_write: case SYS_pwrite64: case SYS_writev: case SYS_pwritev:
    case SYS_sendto:
      return true;
    default:
      return false;
  }
}

bool can_carry_out(int number) {
  switch (number) {
    case SYS_fsync: case SYS_fdatasync: case SYS_ftruncate: case SYS_fallocate: case SYS_sync_file_range:
    case SYS_lseek: case SYS_fchmod: case SYS_shutdown: case SYS_syncfs:
      return true;
    default:
      return can_carry_out_partly(number);
  }
}

bool is_quick(NotifiedCall& call) {
  int err = 0;
  const Fd fd = call.duplicate(static_cast<int>(call.argument(0)), err);
  struct stat status {};
  return !fd || (::fstat(fd.get(), &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ||
                                                     S_ISDIR(status.st_mode)));
}

std::int64_t carry_out(NotifiedCall& call, std::int64_t most, const std::function<bool()>& alive) {
  int err = 0;
  const Fd fd = call.duplicate(static_cast<int>(call.argument(0)), err);
  if (!fd) return -err;
  // A broken pipe must not end rose.
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);

  const int flags = ::fcntl(fd.get(), F_GETFL);
  const bool may_wait = !is_quick(call) && (flags & O_NONBLOCK) == 0;
  const auto limited = [&](std::uint64_t size) {
    return static_cast<std::size_t>(
        std::min({size, kMostBytes, most < 0 ? kMostBytes : static_cast<std::uint64_t>(most)}));
  };
  const auto offset = [&](int index) { return static_cast<off_t>(call.argument(index)); };

  switch (call.number()) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_sendto: {
      std::string data;
      if (call.number() == SYS_writev || call.number() == SYS_pwritev) {
        if (!gather(call, call.argument(1), call.argument(2), most, data)) return -EFAULT;
      } else {
        const auto want = limited(call.argument(2));
        data = call.read_memory(call.argument(1), want);
        if (data.size() != want) return -EFAULT;
      }
      sockaddr_storage address{};
      socklen_t address_size = 0;
      if (call.number() == SYS_sendto && call.argument(4) != 0) {
        const auto raw = call.read_memory(call.argument(4), std::min<std::uint64_t>(call.argument(5), sizeof address));
        std::memcpy(&address, raw.data(), raw.size());
        address_size = static_cast<socklen_t>(raw.size());
      }
      std::size_t done = 0;
      do {
        if (may_wait && !wait_ready(fd.get(), POLLOUT, alive)) return done > 0 ? static_cast<std::int64_t>(done) : -EINTR;
        std::int64_t got = 0;
        const char* from = data.data() + done;
        const std::size_t left = data.size() - done;
        if (call.number() == SYS_pwrite64 || call.number() == SYS_pwritev) {
          got = result_of(::pwrite(fd.get(), from, left, offset(3) + static_cast<off_t>(done)));
        } else if (call.number() == SYS_sendto) {
          got = result_of(::sendto(fd.get(), from, left, static_cast<int>(call.argument(3)) | MSG_NOSIGNAL |
                                                             (may_wait ? MSG_DONTWAIT : 0),
                                   address_size > 0 ? reinterpret_cast<sockaddr*>(&address) : nullptr, address_size));
        } else {
          got = may_wait ? result_of(::send(fd.get(), from, left, MSG_DONTWAIT | MSG_NOSIGNAL)) : -ENOTSOCK;
          // A pipe that is ready takes this much without waiting.
          if (got == -ENOTSOCK) {
            got = result_of(::write(fd.get(), from, may_wait ? std::min<std::size_t>(left, PIPE_BUF) : left));
          }
        }
        if (got == -EAGAIN && may_wait) continue;
        if (got < 0) return done > 0 ? static_cast<std::int64_t>(done) : got;
        done += static_cast<std::size_t>(got);
        if (got == 0) break;
      } while (may_wait && done < data.size());
      return static_cast<std::int64_t>(done);
    }
    case SYS_read:
    case SYS_pread64: {
      std::string data(limited(call.argument(2)), '\0');
      if (may_wait && !wait_ready(fd.get(), POLLIN, alive)) return -EINTR;
      const auto got = call.number() == SYS_read
                           ? result_of(::read(fd.get(), data.data(), data.size()))
                           : result_of(::pread(fd.get(), data.data(), data.size(), offset(3)));
      if (got > 0 && !call.write_memory(call.argument(1), data.data(), static_cast<std::size_t>(got))) return -EFAULT;
      return got;
    }
    case SYS_fsync:
      return result_of(::fsync(fd.get()));
    case SYS_fdatasync:
      return result_of(::fdatasync(fd.get()));
    case SYS_syncfs:
      return result_of(::syncfs(fd.get()));
    case SYS_ftruncate:
      return result_of(::ftruncate(fd.get(), offset(1)));
    case SYS_fallocate:
      return result_of(::fallocate(fd.get(), static_cast<int>(call.argument(1)), offset(2), offset(3)));
    case SYS_sync_file_range:
      return result_of(::sync_file_range(fd.get(), offset(1), offset(2), static_cast<unsigned>(call.argument(3))));
    case SYS_lseek:
      return result_of(::lseek(fd.get(), offset(1), static_cast<int>(call.argument(2))));
    case SYS_fchmod:
      return result_of(::fchmod(fd.get(), static_cast<mode_t>(call.argument(1))));
    case SYS_shutdown:
      return result_of(::shutdown(fd.get(), static_cast<int>(call.argument(1))));
    default:
      return -ENOSYS;
  }
}

}  // namespace rose::inject
