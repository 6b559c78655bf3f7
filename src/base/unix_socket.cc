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
                "at most 80 characters are possible after the last '/'");
  std::memcpy(address.name.sun_path, path.c_str(), path.size() + 1);
  return address;
}

ssize_t send_with_descriptors(int socket, std::string_view bytes, std::span<const int> fds) {
  if (fds.size() > kMostSentDescriptors) {
    errno = EINVAL;
    return -1;
  }
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostSentDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(head), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t receive_with_descriptors(int socket, std::span<char> bytes, SentDescriptors& into) {
  into = {};
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostSentDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= head->cmsg_len - CMSG_LEN(0) && into.count < into.fds.size();
         at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head) + at, sizeof fd);
      into.fds[into.count++] = Fd(fd);
    }
  }
  return n;
}

bool send_descriptors(int socket, std::span<const int> fds, std::uint32_t word) {
  if (fds.empty()) {
    errno = EINVAL;
    return false;
  }
  return send_with_descriptors(socket, {reinterpret_cast<const char*>(&word), sizeof word}, fds) == sizeof word;
}

Fd receive_descriptor(int socket, std::uint32_t word) {
  char bytes[sizeof word];
  SentDescriptors sent;
  if (receive_with_descriptors(socket, bytes, sent) != sizeof word || sent.count != 1) return {};
  return std::memcmp(bytes, &word, sizeof word) == 0 ? std::move(sent.fds[0]) : Fd();
}

}  // namespace rose
