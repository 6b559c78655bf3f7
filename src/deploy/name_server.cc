#include "deploy/name_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/thread.h"
#include "deploy/deployment.h"

namespace rose::deploy {

Result<void> NameServer::add(int netns_fd, const std::string& hosts) {
  Fd socket;
  int err = 0;
  in_netns(netns_fd, [&] {
    socket = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // A node that is itself a name server must still be able to bind port 53 of all addresses. For this, both sockets
    // must have the same one of these options, and name servers set one of them.
    const int on = 1;
    if (socket) {
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    }
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(kNamePort);
    ::inet_pton(AF_INET, kNameServer, &at.sin_addr);
    if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) err = errno;
  });
  if (!socket || err != 0) return fail_errno(ErrorKind::environment, "cannot serve names in a network namespace", err);
  served_.push_back({std::move(socket), name_table(hosts)});
  return {};
}

Result<void> NameServer::start() {
  if (served_.empty()) return {};
  quit_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!quit_) return fail_errno(ErrorKind::environment, "cannot serve names", errno);
  ROSE_TRY(thread_, start_thread([this] { serve(); }));
  return {};
}

void NameServer::serve() {
  std::vector<pollfd> watched{{quit_.get(), POLLIN, 0}};
  for (const Served& served : served_) watched.push_back({served.socket.get(), POLLIN, 0});
  std::string packet(2048, '\0');
  for (;;) {
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    if (watched[0].revents != 0) return;
    for (std::size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents == 0) continue;
      const int socket = watched[i].fd;
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const ssize_t n = ::recvfrom(socket, packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (n < 0) continue;
      const std::string answer =
          dns_answer(std::string_view(packet).substr(0, static_cast<std::size_t>(n)), served_[i - 1].names);
      // The error is ignored: the client may have ended.
      if (!answer.empty())
        (void)::sendto(socket, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
  }
}

NameServer::~NameServer() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(quit_.get(), &one, sizeof one);
  thread_.join();
}

}  // namespace rose::deploy
