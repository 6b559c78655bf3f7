#include "base/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace rose {

Result<UnixAddress> unix_address(const std::filesystem::path& socket) {
  std::error_code bad;
  const std::filesystem::path absolute = std::filesystem::absolute(socket, bad);
  const std::string file = absolute.filename().string();
  if (bad || file.empty() || file == "." || file == "..")
    return fail(ErrorKind::input, fmt::format("'{}' cannot be a socket's path", socket.string()));
  UnixAddress address;
  address.name.sun_family = AF_UNIX;
  address.folder = Fd(::open(absolute.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!address.folder)
    return fail_errno(ErrorKind::input, fmt::format("the folder of socket '{}'", socket.string()), errno);
  std::string path = absolute.string();
  if (path.size() >= sizeof address.name.sun_path)
    path = fmt::format("/proc/self/fd/{}/{}", address.folder.get(), file);
  if (path.size() >= sizeof address.name.sun_path)
    return fail(ErrorKind::input, fmt::format("the socket's name '{}' is too long", file),
                "at most 80 characters behind the last '/'");
  std::memcpy(address.name.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool send_descriptors(int socket, std::span<const int> fds, std::uint32_t word) {
  constexpr std::size_t kMost = 4;
  if (fds.empty() || fds.size() > kMost) {
    errno = EINVAL;
    return false;
  }
  iovec part{&word, sizeof word};
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof word;
}

Fd receive_descriptor(int socket, std::uint32_t word) {
  std::uint32_t got = 0;
  iovec part{&got, sizeof got};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof got) return {};
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int))) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  Fd owned(fd);
  return got == word ? std::move(owned) : Fd();
}

}  // namespace rose
