// Parses the kernel's tables of sockets and addresses (/proc/PID/net/...). Pure; lines may contain anything.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rose::draft {

struct Socket {
  std::string address;  // the local address
  std::uint16_t port = 0;
  std::string remote;
  std::uint16_t remote_port = 0;
  int state = 0;  // kernel's numbering: 1 established, 2 SYN sent, 10 listening
  std::uint64_t inode = 0;
};
// Reads a line of net/tcp, tcp6, udp or udp6. Returns false for the heading.
[[nodiscard]] bool read_socket_line(std::string_view line, Socket& socket);

// Reads a line of net/unix. Returns the path of a listening socket; "" for other sockets and for abstract names.
[[nodiscard]] std::string read_unix_line(std::string_view line, std::uint64_t& inode);

// The host's own addresses, from net/fib_trie and net/if_inet6.
[[nodiscard]] std::vector<std::string> read_fib_trie(std::string_view text);
[[nodiscard]] std::vector<std::string> read_if_inet6(std::string_view text);

void each_line(std::string_view text, const std::function<void(std::string_view)>& what);

}  // namespace rose::draft
