// Silences: found when they end and while they last; orderly ends and rare use are none.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "observe_support.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;

namespace {

constexpr auto kDelay = 300ms;

TracerOptions quick() {
  TracerOptions options;
  options.network_delay_ns = 300'000'000;
  return options;
}

Fd connect_to(int family, int type, int port) {
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

void say(const Fd& fd, int times) {
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

std::vector<trace::Event> silences(const trace::Trace& trace, int port) {
  std::vector<trace::Event> found;
  for (const auto& event : trace.events) {
    if (event.type == EventType::nd && (event.dport == port || event.sport == port)) found.push_back(event);
  }
  return found;
}

}  // namespace

TEST_CASE("a silence on a busy connection, open and ended, over IPv4, IPv6 and UDP") {
  const TestCgroup cgroup("silence");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4"), tcp6 = server.number("tcp6"), udp4 = server.number("udp4");
  REQUIRE(udp4 > 0);
  auto tracer = start({target("n1", cgroup)}, quick());
  struct Case {
    int family, type, port;
    const char* address;
    trace::Protocol protocol;
  };
  for (const auto& c : {Case{AF_INET, SOCK_STREAM, tcp4, "127.0.0.1", trace::Protocol::tcp},
                        Case{AF_INET6, SOCK_STREAM, tcp6, "::1", trace::Protocol::tcp},
                        Case{AF_INET, SOCK_DGRAM, udp4, "127.0.0.1", trace::Protocol::udp}}) {
    INFO(c.address << " " << c.port);
    const Fd client = connect_to(c.family, c.type, c.port);
    say(client, 20);
    std::this_thread::sleep_for(2 * kDelay);
    const auto during = snapshot(*tracer);
    INFO(describe(during));
    const auto open = silences(during, c.port);
    REQUIRE(open.size() == 1);
    CHECK((open[0].flags & trace::kOpen) != 0);
    CHECK(open[0].duration_ms >= 590);
    say(client, 1);
    const auto after = snapshot(*tracer);
    const auto ended = silences(after, c.port);
    REQUIRE(ended.size() == 1);
    CHECK((ended[0].flags & trace::kOpen) == 0);
    CHECK(ended[0].duration_ms >= open[0].duration_ms);
    CHECK(ended[0].packets >= 20);
    CHECK(after.str(ended[0].src) == c.address);
    CHECK(after.str(ended[0].dst) == c.address);
    CHECK(ended[0].dport == c.port);  // the server's side is told, the client's ephemeral port is not
    CHECK(ended[0].sport == 0);
    CHECK(ended[0].protocol == c.protocol);
    CHECK(after.str(ended[0].node) == "n1");
  }
}

TEST_CASE("a connection that was closed in order is not silent") {
  const TestCgroup cgroup("closed");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  auto tracer = start({target("n1", cgroup)}, quick());
  {
    const Fd client = connect_to(AF_INET, SOCK_STREAM, tcp4);
    const Fd other = connect_to(AF_INET, SOCK_STREAM, tcp4);
    say(client, 20);
  }
  std::this_thread::sleep_for(2 * kDelay);
  CHECK(silences(snapshot(*tracer), tcp4).empty());
  // Nor does the next connection of the same pair end a silence.
  const Fd again = connect_to(AF_INET, SOCK_STREAM, tcp4);
  say(again, 3);
  CHECK(silences(snapshot(*tracer), tcp4).empty());
}

TEST_CASE("a reset ends a connection too, and so does the end of our own process") {
  const TestCgroup cgroup("reset");
  auto tracer = start({target("n1", cgroup)}, quick());
  {
    Victim server(&cgroup, {"serve"});
    const int tcp4 = server.number("tcp4");
    {
      Fd client = connect_to(AF_INET, SOCK_STREAM, tcp4);
      say(client, 20);
      const linger hard{1, 0};
      ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    }
    std::this_thread::sleep_for(2 * kDelay);
    CHECK(silences(snapshot(*tracer), tcp4).empty());
  }
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  const Fd client = connect_to(AF_INET, SOCK_STREAM, tcp4);
  say(client, 20);
  ::kill(server.pid(), SIGKILL);
  server.wait();
  std::this_thread::sleep_for(2 * kDelay);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(silences(trace, tcp4).empty());
}

TEST_CASE("a silence goes on when this side gives up on a peer that is cut off, not when the peer answers") {
  const OwnNetwork network;
  const TestCgroup cgroup("given-up");
  for (const bool cut : {false, true}) {
    INFO("cut: " << cut);
    Victim server(&cgroup, {"serve"});
    const int tcp4 = server.number("tcp4");
    auto tracer = start({target("n1", cgroup)}, quick());
    const Fd client = connect_to(AF_INET, SOCK_STREAM, tcp4);
    say(client, 20);
    if (cut) network.loopback(false);
    std::this_thread::sleep_for(3 * kDelay);
    ::kill(server.pid(), SIGKILL);  // nothing on its way: it sends a FIN
    server.wait();
    if (!cut) {
      std::this_thread::sleep_for(3 * kDelay);
      const auto trace = snapshot(*tracer);
      INFO(describe(trace));
      CHECK(silences(trace, tcp4).empty());
      continue;
    }
    REQUIRE(eventually([&] {
      const auto open = silences(snapshot(*tracer), tcp4);
      return open.size() == 1 && (open[0].flags & trace::kOpen) != 0;
    }));
    network.loopback(true);
    // The FIN is sent again, and answered.
    std::vector<trace::Event> ended;
    REQUIRE(eventually([&] {
      ended = silences(snapshot(*tracer), tcp4);
      return ended.size() == 1 && (ended[0].flags & trace::kOpen) == 0;
    }, 30s));
    CHECK(ended[0].duration_ms >= 1400);
    // The pair has no open connection any more: what follows is no silence.
    std::this_thread::sleep_for(3 * kDelay);
    CHECK(silences(snapshot(*tracer), tcp4).size() == 1);
  }
}

TEST_CASE("a reconnect with another ephemeral port continues the pair") {
  const TestCgroup cgroup("reconnect");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  auto tracer = start({target("n1", cgroup)}, quick());
  const Fd first = connect_to(AF_INET, SOCK_STREAM, tcp4);  // stays open: it was cut, not closed
  say(first, 20);
  std::this_thread::sleep_for(2 * kDelay);
  const Fd second = connect_to(AF_INET, SOCK_STREAM, tcp4);
  say(second, 1);
  const auto found = silences(snapshot(*tracer), tcp4);
  REQUIRE(found.size() == 1);
  CHECK((found[0].flags & trace::kOpen) == 0);
}

TEST_CASE("a rarely used connection is told apart after it has shown its ways") {
  const TestCgroup cgroup("rare");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  auto tracer = start({target("n1", cgroup)}, quick());
  const Fd client = connect_to(AF_INET, SOCK_STREAM, tcp4);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(::send(client.get(), "x", 1, MSG_NOSIGNAL) == 1);
    std::this_thread::sleep_for(kDelay + 50ms);
  }
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(silences(trace, tcp4).size() <= 2);
}

TEST_CASE("whole interfaces: silences of the nodes' addresses") {
  const TestCgroup cgroup("interface");
  Victim server(nullptr, {"serve"});  // not in a target: only its address counts
  const int tcp4 = server.number("tcp4");
  Target node = target("n1", cgroup);
  node.addresses = {"127.0.0.1"};
  auto options = quick();
  options.interfaces = {"lo"};
  auto tracer = start({node}, options);
  const Fd client = connect_to(AF_INET, SOCK_STREAM, tcp4);
  say(client, 20);
  std::this_thread::sleep_for(2 * kDelay);
  say(client, 1);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  bool found = false;
  for (const auto& event : silences(trace, tcp4)) {
    if (event.dport == tcp4 && event.duration_ms >= 590) found = true;
  }
  CHECK(found);
  options.interfaces = {"rose-none0"};
  const auto refused = Tracer::start(options, {node});
  REQUIRE(!refused);
  CHECK(refused.error().kind == ErrorKind::usage);
}
