// Connections and network namespaces for the tests of silences.
#pragma once

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "observe_support.h"

namespace rose::observe::test {

inline constexpr auto kDelay = 300ms;

inline TracerOptions quick() {
  TracerOptions options;
  options.network_delay_ns = 300'000'000;
  return options;
}

inline Fd connect_to(int family, int type, int port) {
  Fd fd(::socket(family, type | SOCK_CLOEXEC, 0));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  v6.sin6_addr = in6addr_loopback;
  REQUIRE((family == AF_INET ? ::connect(fd.get(), reinterpret_cast<sockaddr*>(&v4), sizeof v4)
                             : ::connect(fd.get(), reinterpret_cast<sockaddr*>(&v6), sizeof v6)) == 0);
  return fd;
}

inline void say(const Fd& fd, int times) {
  for (int i = 0; i < times; ++i) {
    REQUIRE(::send(fd.get(), "x", 1, MSG_NOSIGNAL) == 1);
    std::this_thread::sleep_for(10ms);
  }
}

// This thread, and the victims that it starts, in a network namespace with only a loopback interface.
class OwnNetwork {
 public:
  OwnNetwork() : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    REQUIRE(before_);
    REQUIRE(::unshare(CLONE_NEWNET) == 0);
    loopback(true);
  }
  ~OwnNetwork() { (void)::setns(before_.get(), CLONE_NEWNET); }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;

  void loopback(bool up) const {
    const Fd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    REQUIRE(::ioctl(any.get(), SIOCGIFFLAGS, &request) == 0);
    request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    REQUIRE(::ioctl(any.get(), SIOCSIFFLAGS, &request) == 0);
  }

 private:
  Fd before_;
};

inline std::vector<trace::Event> silences(const trace::Trace& trace, int port) {
  std::vector<trace::Event> found;
  for (const auto& event : trace.events) {
    if (event.type == trace::EventType::nd && (event.dport == port || event.sport == port)) found.push_back(event);
  }
  return found;
}

}  // namespace rose::observe::test
