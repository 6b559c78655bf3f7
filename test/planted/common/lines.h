// Code that planted nodes with a thread per connection share, without their bugs: lines of text are received and sent,
// a primary listens, and a follower reconnects whenever the primary is gone or silent. C++; serve.h is for nodes
// with one thread.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "addresses.h"

inline constexpr int kConnectMs = 300;
inline constexpr int kSilenceMs = 600;  // a follower reconnects if the primary is silent for so long

inline bool send_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

// Reads lines from a connection. next() returns nothing when the connection has ended, or after `timeout_ms` of silence
// (-1: it waits without a limit).
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}
  std::optional<std::string> next(int timeout_ms) {
    for (;;) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      pollfd wait{fd_, POLLIN, 0};
      if (poll(&wait, 1, timeout_ms) <= 0) return std::nullopt;
      char piece[65536];
      const ssize_t got = read(fd_, piece, sizeof piece);
      if (got <= 0) return std::nullopt;
      buffer_.append(piece, static_cast<std::size_t>(got));
    }
  }

 private:
  int fd_;
  std::string buffer_;
};

inline int listen_at(const std::string& ip) {
  const sockaddr_in address = address_of(ip);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 || listen(listener, 16) < 0) {
    std::perror("cannot listen");
    std::exit(1);
  }
  return listener;
}

// Calls `serve` for each connection, in a separate thread. `serve` closes the connection.
[[noreturn]] inline void serve_each(int listener, void (*serve)(int fd)) {
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) std::thread(serve, fd).detach();
  }
}

inline int connect_to(const sockaddr_in& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  pollfd wait{fd, POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      (errno == EINPROGRESS && poll(&wait, 1, kConnectMs) == 1 &&
       getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0))
    return fd;
  close(fd);
  return -1;
}

// Never returns: connects to the primary, sends where(), and passes each line to `take` until `take` fails or the
// primary is silent; then it reconnects.
[[noreturn]] inline void follow(const std::string& primary, const std::function<std::string()>& where,
                                const std::function<bool(Lines& lines, const std::string& line)>& take) {
  const sockaddr_in address = address_of(primary);
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    const int fd = connect_to(address);
    if (fd < 0) continue;
    Lines lines(fd);
    send_all(fd, where());
    while (const std::optional<std::string> line = lines.next(kSilenceMs))
      if (!take(lines, *line)) break;
    close(fd);
  }
}
