// AF_UNIX sockets: addresses for paths of any length, and passing descriptors between processes.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace rose {

// A socket address holds at most 107 characters. A longer path is addressed through a descriptor of its folder, which
// must stay open while the address is used.
struct UnixAddress {
  sockaddr_un name{};
  Fd folder;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
  [[nodiscard]] static socklen_t size() { return sizeof(sockaddr_un); }
};
// Returns ErrorKind::input if the path names no file, its folder cannot be opened or the file name is too long.
[[nodiscard]] Result<UnixAddress> unix_address(const std::filesystem::path& socket);

// The functions below work on a connected socket. None of them takes locks or allocates memory, so that a process
// cloned from a multithreaded one may call them.

inline constexpr std::size_t kMostSentDescriptors = 16;  // per message

// These functions make one call each, like ::send and ::recv, and return the number of bytes, or -1 with errno.
// Descriptors are attached to the first byte.
[[nodiscard]] ssize_t send_with_descriptors(int socket, std::string_view bytes, std::span<const int> fds);
struct SentDescriptors {
  std::array<Fd, kMostSentDescriptors> fds;
  std::size_t count = 0;
};
[[nodiscard]] ssize_t receive_with_descriptors(int socket, std::span<char> bytes, SentDescriptors& into);

// send_descriptors() and send_descriptor() send descriptors with a number, `word`; the receiver accepts only
// descriptors that came with the same number. They return false on failure, and receive_descriptor() returns an invalid
// descriptor; errno is set.
[[nodiscard]] bool send_descriptors(int socket, std::span<const int> fds, std::uint32_t word);
[[nodiscard]] inline bool send_descriptor(int socket, int fd, std::uint32_t word) {
  return send_descriptors(socket, {&fd, 1}, word);
}
// Waits at most as long as the socket's receive timeout (SO_RCVTIMEO).
[[nodiscard]] Fd receive_descriptor(int socket, std::uint32_t word);

}  // namespace rose
