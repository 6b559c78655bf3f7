#include "evidence/surprise.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/path.h"
#include "kernel/syscalls.h"

namespace rose::evidence {
namespace {

template <std::size_t N>
bool in(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool socket_call(std::string_view syscall) {
  static constexpr std::array<std::string_view, 14> kCalls{
      "connect",  "accept",   "accept4",  "sendto",     "recvfrom",   "sendmsg",     "recvmsg",
      "shutdown", "sendmmsg", "recvmmsg", "getsockopt", "setsockopt", "getpeername", "getsockname"};
  return in(kCalls, syscall);
}

bool data_call(std::string_view syscall) {
  static constexpr std::array<std::string_view, 10> kCalls{"read",     "write",  "readv",   "writev",   "pread64",
                                                           "pwrite64", "preadv", "pwritev", "sendfile", "splice"};
  return in(kCalls, syscall);
}

// True for calls that return EAGAIN if a limit of processes, threads, locked memory or asynchronous requests is reached
// (man 2 of each call). Other calls return EAGAIN whenever they would have to wait.
bool fails_at_limit(std::string_view syscall) {
  static constexpr std::array<std::string_view, 10> kCalls{"clone", "clone3",   "fork",   "vfork", "execve",
                                                           "mlock", "mlockall", "mremap", "mmap",  "io_setup"};
  return in(kCalls, syscall);
}

}  // namespace

bool resource_error(int err) {
  if (kernel::resource_error(err)) return true;
  switch (err) {
    case EACCES:
    case EPERM:
    case ENOBUFS:
    case EFBIG:
    case ENXIO:
    case ENOLCK:
    case ENOLINK:
    case ENETDOWN: return true;
    default: return false;
  }
}

bool lasting_error(int err) { return err == ENOSPC || err == EDQUOT || err == EROFS || err == EMFILE || err == ENFILE; }

bool connection_error(int err, std::string_view syscall, bool has_peer) {
  // After a connect has failed, further connects of the same socket return many kinds of errors (EALREADY, EINVAL,
  // ...). So all errors of connect count, except those that the connection cannot have caused.
  if (syscall == "connect" && !resource_error(err) && err != EADDRNOTAVAIL && err != EBADF && err != ENOENT)
    return true;
  switch (err) {
    case EPIPE:
    case ECONNRESET: return true;  // only sockets and pipes return these
    case EINVAL:                   // the error of a datagram on a blackhole route
      return has_peer && kernel::sends_datagrams(syscall);
    case EPERM:  // the error of a send that a packet filter drops
    case EACCES: return has_peer && socket_call(syscall);
    case ECONNREFUSED:
    case ECONNABORTED:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ENETRESET:
    case ENOTCONN:
    case ESHUTDOWN: return has_peer || socket_call(syscall) || data_call(syscall);
    default: return false;
  }
}

bool system_path(std::string_view path) {
  static constexpr std::array<std::string_view, 8> kRoots{"/proc/", "/sys/", "/dev/",   "/etc/",
                                                          "/usr/",  "/lib/", "/lib64/", "/bin/"};
  return std::any_of(kRoots.begin(), kRoots.end(), [&](std::string_view root) { return path.starts_with(root); });
}

bool file_path(std::string_view path) {
  if (path.empty()) return false;
  if (path.find('/') != std::string_view::npos && !path.starts_with("/memfd:")) return true;
  // A bare name is a file in the working directory; "pipe:[7]" and similar are not.
  return path.find(":[") == std::string_view::npos && !path.starts_with(kAnonInode) && !path.starts_with("/memfd:");
}

bool usual_noise(int err, std::string_view syscall, std::string_view path) {
  if (kernel::runtime_asks(err, syscall, path)) return true;
  switch (err) {
    case EAGAIN: return !fails_at_limit(syscall);
    case EINPROGRESS:
    case EALREADY:
    case EISCONN:
    case ENOTTY:
    case ECHILD:
    case EINTR:
    case ESRCH:
    case ENOSYS:
    case ENODATA:
    case EOPNOTSUPP:
    case ESPIPE:
    case ENOTSOCK:
    case ENOPROTOOPT: return true;
    case EINVAL: return syscall == "readlink" || syscall == "readlinkat" || syscall == "prctl" || syscall == "ioctl";
    case ETIMEDOUT: return !connection_error(err, syscall, false);  // a timed wait, such as that of futex
    case EEXIST:
      return syscall == "mkdir" ||
             syscall == "mkdirat";  // programs create their folders at each start, although they exist (`mkdir -p`)
    case EBADF: return syscall == "close" || syscall == "fcntl";
    case EPERM: return !lookup_call(syscall) && !data_call(syscall) && path.empty() && !socket_call(syscall);
    case ENOENT:
    case ENOTDIR:
    case EACCES:
      return lookup_call(syscall) && (system_path(path) || path.find("/.git") != std::string_view::npos ||
                                      path.find("locale") != std::string_view::npos || path.ends_with(".so") ||
                                      path.find(".so.") != std::string_view::npos || path.ends_with(".pyc") ||
                                      path.find("__pycache__") != std::string_view::npos || syscall == "execve");
    default: return false;
  }
}

int ordinariness(int err, std::string_view syscall, std::string_view path, bool has_peer) {
  if (usual_noise(err, syscall, path)) return 3;
  // Reading /proc and /sys fails as well when descriptors or memory run out; that is only a consequence.
  const bool kernels_own = path.starts_with("/proc/") || path.starts_with("/sys/");
  if (resource_error(err) && !connection_error(err, syscall, has_peer)) return kernels_own ? 2 : 0;
  if (err == EAGAIN) return 0;  // the call reached a limit: for all other calls, usual_noise() was true
  switch (err) {
    case ENOENT:
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case EINVAL:
    case ERANGE:
    case ENOEXEC:
    case EXDEV: return 2;
    default: return 1;
  }
}

bool lookup_call(std::string_view syscall) {
  static constexpr std::array<std::string_view, 17> kCalls{
      "open",       "openat",   "openat2",    "stat",   "lstat",    "newfstatat", "statx", "access",  "faccessat",
      "faccessat2", "readlink", "readlinkat", "execve", "execveat", "statfs",     "chdir", "getxattr"};
  return in(kCalls, syscall);
}

bool hot_call(std::string_view syscall) {
  return data_call(syscall) || socket_call(syscall) || syscall == "fsync" || syscall == "fdatasync" ||
         syscall.starts_with("epoll_") || syscall == "poll" || syscall == "futex" || syscall == "lseek" ||
         syscall == "mmap" || syscall == "close" || syscall == "fcntl" || syscall == "ioctl";
}

}  // namespace rose::evidence
