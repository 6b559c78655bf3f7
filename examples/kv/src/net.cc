#include "net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace kv {
namespace {

constexpr std::size_t kMostFrame = std::size_t{64} << 20;
constexpr std::size_t kMostLine = std::size_t{1} << 20;

enum class Wait { ready, timeout, stopped };

// Counts the time that this thread really waited instead of reading a clock: if the whole machine was paused, the peer
// was not silent.
Wait wait_for(int fd, short events, Millis timeout, const Stop& stop) {
  constexpr Millis kSlice{100};
  while (true) {
    std::array<pollfd, 2> fds = {pollfd{fd, events, 0}, pollfd{stop.fd(), POLLIN, 0}};
    const Millis slice = std::min(kSlice, timeout);
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(slice.count()));
    if (ready < 0 && errno != EINTR) return Wait::stopped;
    if (fds[1].revents != 0) return Wait::stopped;
    if (ready > 0 && fds[0].revents != 0) return Wait::ready;
    timeout -= slice;
    if (timeout <= Millis(0)) return Wait::timeout;
  }
}

std::optional<sockaddr_in> parse_address(const std::string& address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &result.sin_addr) != 1) return std::nullopt;
  return result;
}

}  // namespace

Stop::Stop() : event_(::eventfd(0, EFD_CLOEXEC)) {
  if (!event_) fatal("eventfd: no descriptor left");
}

void Stop::request() {
  if (::eventfd_write(event_.get(), 1) != 0) fatal("eventfd: can't be written");
}

bool Stop::requested() const { return wait(Millis(0)); }

bool Stop::wait(Millis time) const {
  pollfd fd{event_.get(), POLLIN, 0};
  return ::poll(&fd, 1, static_cast<int>(time.count())) > 0;
}

Connection Connection::dial(const std::string& address, std::uint16_t port, Millis timeout, const Stop& stop) {
  const std::optional<sockaddr_in> target = parse_address(address, port);
  if (!target) return {};
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return {};
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*target), sizeof *target) != 0) {
    if (errno != EINPROGRESS || wait_for(socket.get(), POLLOUT, timeout, stop) != Wait::ready) return {};
    int err = 0;
    socklen_t size = sizeof err;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &err, &size) != 0 || err != 0) return {};
  }
  const int on = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return Connection(std::move(socket));
}

bool Connection::stale() const {
  pollfd fd{socket_.get(), POLLIN, 0};
  return ::poll(&fd, 1, 0) != 0;
}

bool Connection::send(std::string_view bytes, Millis timeout, const Stop& stop) {
  while (!bytes.empty()) {
    if (wait_for(socket_.get(), POLLOUT, timeout, stop) != Wait::ready) return false;
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Connection::fill(Millis timeout, const Stop& stop) {
  if (wait_for(socket_.get(), POLLIN, timeout, stop) != Wait::ready) return false;
  std::array<char, 65536> bytes;
  ssize_t got = 0;
  do {
    got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  buffer_.append(bytes.data(), static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> Connection::read_line(Millis timeout, const Stop& stop) {
  while (true) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return line;
    }
    if (buffer_.size() > kMostLine || !fill(timeout, stop)) return std::nullopt;
  }
}

bool Connection::send_frame(std::uint8_t type, std::string_view body, Millis timeout, const Stop& stop) {
  Writer head;
  head.u32(static_cast<std::uint32_t>(body.size()));
  head.u8(type);
  return send(head.take().append(body), timeout, stop);
}

std::optional<Connection::Frame> Connection::read_frame(Millis timeout, const Stop& stop) {
  constexpr std::size_t kHead = 5;
  while (true) {
    if (buffer_.size() >= kHead) {
      Reader in(buffer_);
      const std::size_t size = in.u32();
      if (size > kMostFrame) return std::nullopt;
      if (buffer_.size() >= kHead + size) {
        Frame frame{in.u8(), buffer_.substr(kHead, size)};
        buffer_.erase(0, kHead + size);
        return frame;
      }
    }
    if (!fill(timeout, stop)) return std::nullopt;
  }
}

Status Listener::start(const std::string& address, std::uint16_t port, const Stop& stop, Serve serve) {
  const std::string where = address + ":" + std::to_string(port);
  const std::optional<sockaddr_in> local = parse_address(address, port);
  if (!local) return Status::error("'" + address + "' is not an IPv4 address");
  socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_) return Status::from_errno("socket", errno);
  const int on = 1;
  (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&*local), sizeof *local) != 0) {
    return Status::from_errno("bind " + where, errno);
  }
  if (::listen(socket_.get(), 64) != 0) return Status::from_errno("listen " + where, errno);
  serve_ = std::move(serve);
  acceptor_ = std::thread([this, &stop] { accept_loop(stop); });
  return Status::ok();
}

void Listener::accept_loop(const Stop& stop) {
  while (true) {
    const Wait wait = wait_for(socket_.get(), POLLIN, Millis(1000), stop);
    if (wait == Wait::stopped) return;
    reap(false);
    if (wait == Wait::timeout) continue;
    Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) continue;
    const int on = 1;
    (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::lock_guard lock(mutex_);
    Worker& worker = workers_.emplace_back();
    worker.thread = std::thread([this, &worker, connection = Connection(std::move(socket))]() mutable {
      serve_(connection);
      connection.close();
      const std::lock_guard done(mutex_);
      worker.done = true;
    });
  }
}

void Listener::reap(bool all) {
  std::list<Worker> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = workers_.begin(); it != workers_.end();) {
      const auto next = std::next(it);
      if (it->done) ended.splice(ended.end(), workers_, it);
      it = next;
    }
  }
  for (Worker& worker : ended) worker.thread.join();
  if (!all) return;
  // A worker writes `done` to its element of the list, so the element must stay until the thread is joined.
  for (Worker& worker : workers_) worker.thread.join();
  workers_.clear();
}

void Listener::join() {
  if (acceptor_.joinable()) acceptor_.join();
  reap(true);
}

}  // namespace kv
