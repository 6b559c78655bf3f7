// TCP: waiting that can be stopped, lines for clients, frames for peers, and a listener with a
// thread for each connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base.h"
#include "storage.h"

namespace kv {

using Millis = std::chrono::milliseconds;

// A request to stop. From the request on, the descriptor is readable; every wait watches it.
class Stop {
 public:
  Stop();
  void request();
  bool requested() const;
  int fd() const { return event_.get(); }
  // True when stopped before the time was over.
  bool wait(Millis time) const;

 private:
  Fd event_;
};

// A connected socket.
class Connection {
 public:
  Connection() = default;
  explicit Connection(Fd socket) : socket_(std::move(socket)) {}
  // `address` is an IPv4 address.
  static Connection dial(const std::string& address, std::uint16_t port, Millis timeout, const Stop& stop);

  bool open() const { return static_cast<bool>(socket_); }
  void close() {
    socket_.reset();
    buffer_.clear();
  }
  // The other side has closed the connection, or has sent something without a request.
  bool stale() const;

  bool send(std::string_view bytes, Millis timeout, const Stop& stop);
  // The next line without its newline; nothing at the end of the stream, or on an error, timeout or stop.
  std::optional<std::string> read_line(Millis timeout, const Stop& stop);

  // A frame is a length, a type and a body.
  bool send_frame(std::uint8_t type, std::string_view body, Millis timeout, const Stop& stop);
  struct Frame {
    std::uint8_t type = 0;
    std::string body;
  };
  std::optional<Frame> read_frame(Millis timeout, const Stop& stop);

 private:
  bool fill(Millis timeout, const Stop& stop);
  Fd socket_;
  std::string buffer_;  // bytes that were received and not yet returned
};

class Listener {
 public:
  // `serve` runs in a separate thread for each connection.
  using Serve = std::function<void(Connection&)>;
  ~Listener() { join(); }
  Status start(const std::string& address, std::uint16_t port, const Stop& stop, Serve serve);
  // Call this after Stop was requested.
  void join();

 private:
  struct Worker {
    std::thread thread;
    bool done = false;
  };
  void accept_loop(const Stop& stop);
  void reap(bool all);

  Fd socket_;
  Serve serve_;
  std::thread acceptor_;
  std::mutex mutex_;
  std::list<Worker> workers_;
};

}  // namespace kv
