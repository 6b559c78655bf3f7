// AF_UNIX: addresses by path of any length, and descriptors handed from process to process.
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

// An address holds 107 characters of path; a longer path is reached through a descriptor of its folder, which must stay
// open for as long as the address is used.
struct UnixAddress {
  sockaddr_un name{};
  Fd folder;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
  [[nodiscard]] static socklen_t size() { return sizeof(sockaddr_un); }
};
// ErrorKind::input: the path names no file, its folder cannot be opened, or the file's own name is too long.
[[nodiscard]] Result<UnixAddress> unix_address(const std::filesystem::path& socket);

// Over a connected socket. None of these takes locks or memory, so that a process that was cloned from one with threads
// may call them too.

inline constexpr std::size_t kMostSentDescriptors = 16;  // of one message

// As ::send and ::recv, once: how many bytes, or -1 with errno. Descriptors go with the message's first byte.
[[nodiscard]] ssize_t send_with_descriptors(int socket, std::string_view bytes, std::span<const int> fds);
struct SentDescriptors {
  std::array<Fd, kMostSentDescriptors> fds;
  std::size_t count = 0;
};
[[nodiscard]] ssize_t receive_with_descriptors(int socket, std::span<char> bytes, SentDescriptors& into);

// Descriptors and a word that says what they are. False or an invalid descriptor, with errno, when that fails.
[[nodiscard]] bool send_descriptors(int socket, std::span<const int> fds, std::uint32_t word);
[[nodiscard]] inline bool send_descriptor(int socket, int fd, std::uint32_t word) {
  return send_descriptors(socket, {&fd, 1}, word);
}
// Waits as long as the socket does (SO_RCVTIMEO).
[[nodiscard]] Fd receive_descriptor(int socket, std::uint32_t word);

}  // namespace rose
