#include "kernel/uring.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace rose::kernel {
namespace {

// Indexed by operation number, as of Linux 6.18.
constexpr std::string_view kOperations[] = {
    "NOP",
    "READV",
    "WRITEV",
    "FSYNC",
    "READ_FIXED",
    "WRITE_FIXED",
    "POLL_ADD",
    "POLL_REMOVE",
    "SYNC_FILE_RANGE",
    "SENDMSG",
    "RECVMSG",
    "TIMEOUT",
    "TIMEOUT_REMOVE",
    "ACCEPT",
    "ASYNC_CANCEL",
    "LINK_TIMEOUT",
    "CONNECT",
    "FALLOCATE",
    "OPENAT",
    "CLOSE",
    "FILES_UPDATE",
    "STATX",
    "READ",
    "WRITE",
    "FADVISE",
    "MADVISE",
    "SEND",
    "RECV",
    "OPENAT2",
    "EPOLL_CTL",
    "SPLICE",
    "PROVIDE_BUFFERS",
    "REMOVE_BUFFERS",
    "TEE",
    "SHUTDOWN",
    "RENAMEAT",
    "UNLINKAT",
    "MKDIRAT",
    "SYMLINKAT",
    "LINKAT",
    "MSG_RING",
    "FSETXATTR",
    "SETXATTR",
    "FGETXATTR",
    "GETXATTR",
    "SOCKET",
    "URING_CMD",
    "SEND_ZC",
    "SENDMSG_ZC",
    "READ_MULTISHOT",
    "WAITID",
    "FUTEX_WAIT",
    "FUTEX_WAKE",
    "FUTEX_WAITV",
    "FIXED_FD_INSTALL",
    "FTRUNCATE",
    "BIND",
    "LISTEN",
    "RECV_ZC",
    "EPOLL_WAIT",
    "READV_FIXED",
    "WRITEV_FIXED",
    "PIPE",
};
static_assert(std::size(kOperations) == 63);

}  // namespace

std::string uring_operation_name(int operation) {
  const auto at = static_cast<std::size_t>(operation);
  return operation >= 0 && at < std::size(kOperations) ? std::string(kOperations[at]) : fmt::format("op_{}", operation);
}

std::optional<int> uring_operation_number(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kOperations); ++i) {
    if (kOperations[i] == name) return static_cast<int>(i);
  }
  if (!name.starts_with("op_")) return std::nullopt;
  int number = 0;
  const auto [stop, error] = std::from_chars(name.data() + 3, name.data() + name.size(), number);
  if (error != std::errc() || stop != name.data() + name.size() || number < 0 || number > 255) return std::nullopt;
  return number;
}

}  // namespace rose::kernel
