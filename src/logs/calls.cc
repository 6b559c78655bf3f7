#include <algorithm>
#include <array>
#include <cerrno>

#include "logs/meaning.h"

namespace rose::logs {
namespace {

using Calls = std::vector<std::string_view>;

// The system calls of an operation, most likely first; the index is the value of Operation.
const Calls& calls_of(Operation operation) {
  static const Calls none;
  static const std::array<Calls, 21> all = {{
      {},
      {"openat", "open", "creat"},
      {"read", "pread64", "readv"},
      {"write", "pwrite64", "writev", "pwritev"},
      {"fsync", "fdatasync", "sync_file_range"},
      {"ftruncate", "fallocate", "truncate"},
      {"rename", "renameat", "renameat2"},
      {"unlink", "unlinkat"},
      {"mkdir", "mkdirat"},
      {"connect"},
      {"accept4", "accept"},
      {"bind", "listen"},
      {"sendto", "write", "sendmsg", "writev"},
      {"read", "recvfrom", "recvmsg"},
      {"clone", "clone3", "vfork", "execve"},
      {"mmap", "brk"},
      {"socket"},
      {"inotify_init1"},
      {"flock", "fcntl"},
      {"chmod", "fchmodat", "fchmod"},
      {"chown", "fchownat", "fchown", "lchown"},
  }};
  const auto i = static_cast<std::size_t>(operation);
  return i < all.size() ? all[i] : none;
}

// The calls that return the error, most likely first. Used for messages that name no call.
Calls calls_by_error(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return {"write", "pwrite64", "openat", "fsync", "fallocate", "ftruncate", "writev", "mkdir"};
    case EFBIG: return {"write", "pwrite64", "ftruncate", "fallocate", "writev"};
    case EIO: return {"write", "fsync", "pwrite64", "fdatasync", "read", "pread64", "openat"};
    case EROFS: return {"openat", "write", "mkdir", "rename", "unlink"};
    case EMFILE:
    case ENFILE: return {"accept4", "accept", "openat", "socket"};
    case ENOENT:
    case EACCES:
    case EPERM:
    case ESTALE:
    case EISDIR:
    case ENOTDIR: return {"openat", "open", "rename", "unlink", "mkdir"};
    case EEXIST: return {"openat", "mkdir"};
    case EBUSY:
    case ENOTEMPTY: return {"rename", "unlink", "rmdir"};
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN: return {"connect"};
    case ECONNRESET: return {"read", "recvfrom", "write", "sendto", "recvmsg"};
    case EPIPE: return {"write", "sendto", "sendmsg", "writev"};
    case ETIMEDOUT: return {"connect", "read", "recvfrom"};
    case EADDRINUSE:
    case EADDRNOTAVAIL: return {"bind", "connect"};
    case ENOMEM: return {"mmap", "clone", "clone3"};
    case EAGAIN: return {"clone", "clone3", "fcntl", "flock", "io_setup"};
    case ENODEV:
    case ENXIO: return {"openat", "mmap", "read"};
    case EBADF: return {"read", "write", "fsync"};
    case ENAMETOOLONG:
    case ELOOP: return {"openat", "mkdir"};
    case EOPNOTSUPP: return {"fallocate", "openat", "sendto"};
    case ENOLCK:
    case EDEADLK: return {"fcntl", "flock"};
    case EPROTO: return {"recvmsg", "read", "accept4"};
    case ECONNABORTED: return {"accept4", "accept"};
    case EXDEV: return {"rename", "link"};
    case ENOBUFS: return {"sendto", "sendmsg"};
    case EINVAL: return {"openat", "write"};
    default: return {};
  }
}

// True if the call can return the error (man 2 of each call). Only errors that few calls return are listed; any other
// error is taken to be possible for every call.
bool can_return(std::string_view call, int error) {
  const auto one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), call) != names.end();
  };
  const bool reads = one_of({"read", "pread64", "readv", "preadv", "recvfrom", "recvmsg"});
  const bool of_socket =
      one_of({"connect", "accept", "accept4", "bind", "listen", "sendto", "sendmsg", "recvfrom", "recvmsg", "socket"});
  switch (error) {
    case EMFILE:
    case ENFILE:  // only calls that create a descriptor return it
      return one_of({"openat", "open", "creat", "accept", "accept4", "socket", "pipe", "pipe2", "dup", "epoll_create1",
                     "eventfd2", "memfd_create", "inotify_init1", "mmap", "execve"});
    case ENOSPC:
    case EDQUOT: return !reads && !of_socket && !one_of({"unlink", "unlinkat", "rmdir", "lseek", "mmap"});
    case EFBIG:
      return one_of({"write", "pwrite64", "writev", "pwritev", "ftruncate", "truncate", "fallocate", "openat", "open"});
    case EIO: return !of_socket && !one_of({"clone", "clone3", "vfork", "brk"});
    case EEXIST:
      return one_of(
          {"openat", "open", "creat", "mkdir", "mkdirat", "link", "linkat", "symlink", "rename", "renameat2"});
    case ENOTEMPTY: return one_of({"rmdir", "rename", "renameat", "renameat2", "unlinkat"});
    case EXDEV: return one_of({"rename", "renameat", "renameat2", "link", "linkat", "copy_file_range"});
    case EADDRINUSE:
    case EADDRNOTAVAIL: return one_of({"bind", "listen", "connect"});
    case ECONNABORTED: return one_of({"accept", "accept4", "read", "recvfrom", "write", "sendto", "connect"});
    case ECONNREFUSED:
    case ECONNRESET:
    case ENOTCONN:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN: return of_socket || one_of({"read", "readv", "write", "writev"});
    default: return true;
  }
}

}  // namespace

std::vector<std::string_view> calls_that_fail(int error, Operation operation, bool exact) {
  Calls by_error = calls_by_error(error);
  const Calls& by_word = calls_of(operation);
  if (by_word.empty()) return by_error;
  if (operation == Operation::lock) return by_word;  // only these calls return EAGAIN for a lock
  // First the calls that both the operation and the error suggest, then the other calls of the operation, then those of
  // the error, because the word "save" may also mean that opening the file failed.
  Calls all;
  const auto add = [&](std::string_view call) {
    if (can_return(call, error) && std::find(all.begin(), all.end(), call) == all.end()) all.push_back(call);
  };
  // Connecting, sending and receiving also fail if no socket could be created.
  const bool needs_socket =
      operation == Operation::connect || operation == Operation::send || operation == Operation::receive;
  if ((error == EMFILE || error == ENFILE) && needs_socket) add("socket");
  for (const std::string_view call : by_word)
    if (std::find(by_error.begin(), by_error.end(), call) != by_error.end()) add(call);
  for (const std::string_view call : by_word) add(call);
  // Calls of other operations return EAGAIN for reasons of their own.
  if (exact || (error == EAGAIN && !all.empty())) return all;
  for (const std::string_view call : by_error) add(call);
  return all;
}

std::vector<std::string_view> calls_of_operation(Operation operation) { return calls_of(operation); }

std::vector<int> errors_of(std::string_view syscall) {
  if (syscall.starts_with("open") || syscall == "creat") return {EIO, ENOSPC, EMFILE, EACCES};
  if (syscall.starts_with("fsync") || syscall.starts_with("fdatasync") || syscall == "sync_file_range" ||
      syscall == "syncfs")
    return {EIO, ENOSPC};
  if (syscall.find("write") != std::string_view::npos) return {ENOSPC, EIO};
  if (syscall.find("read") != std::string_view::npos) return {EIO};
  if (syscall.starts_with("rename") || syscall.starts_with("link")) return {EIO, ENOSPC};
  if (syscall.starts_with("unlink") || syscall == "rmdir") return {EIO, EACCES};
  if (syscall.starts_with("mkdir")) return {ENOSPC, EACCES};
  if (syscall.find("truncate") != std::string_view::npos || syscall == "fallocate") return {ENOSPC, EIO};
  if (syscall == "connect") return {ECONNREFUSED, ETIMEDOUT};
  if (syscall.starts_with("accept")) return {EMFILE, ECONNABORTED};
  if (syscall.starts_with("exec") || syscall.starts_with("clone")) return {EAGAIN, ENOMEM};
  return {};
}

}  // namespace rose::logs
