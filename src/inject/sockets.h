// Addresses and ports of a process's sockets, from /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "inject/shared.h"

namespace rose::inject {

// The local addresses and ports of the process's TCP and UDP sockets, over IPv4 and IPv6. An unspecified address
// (0.0.0.0, ::) is returned as sixteen zeros.
[[nodiscard]] std::vector<rose_endpoint> endpoints_of(pid_t pid);

// The peer of a connected TCP or UDP socket.
struct SocketPeer {
  rose_endpoint endpoint{};
  std::string protocol;  // "tcp"
};
[[nodiscard]] std::optional<SocketPeer> peer_of(pid_t pid, int fd);

// The socket for which a thread waits in the kernel, either in a call on one socket or in a poll of only that socket.
// For example: call "recvfrom", descriptor 7.
struct SocketWait {
  std::string call;
  int fd = -1;
};
[[nodiscard]] std::optional<SocketWait> socket_wait(pid_t pid, pid_t tid);

}  // namespace rose::inject
