// Silences: found when they end and while they last; orderly ends and rare use are none.
#include "observe_network.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;

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

TEST_CASE("whole interfaces: silences of the nodes' addresses, by TCX or by XDP") {
  const bool masked = GENERATE(false, true);
  INFO("without TCX: " << masked);
  if (masked) ::setenv("ROSE_MASK", "tcx", 1);
  const OwnNetwork network;
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
  ::unsetenv("ROSE_MASK");
  REQUIRE(!refused);
  CHECK(refused.error().kind == ErrorKind::usage);
}

TEST_CASE("nodes whose processes share a cgroup: each has its own silences, and nobody else's") {
  const TestCgroup cgroup("shared");
  Victim a(&cgroup, {"serve"}), b(&cgroup, {"serve"}), stranger(&cgroup, {"serve"});
  const int tcp_a = a.number("tcp4"), udp_a = a.number("udp4"), tcp_b = b.number("tcp4"), six_b = b.number("tcp6"),
            udp_b = b.number("udp4"), tcp_c = stranger.number("tcp4");
  REQUIRE(udp_b > 0);
  // Some connections are there before anyone watches.
  const Fd early_a = connect_to(AF_INET, SOCK_STREAM, tcp_a), early_b = connect_to(AF_INET, SOCK_STREAM, tcp_b);
  // Waiting to be accepted they would be found only a second later.
  for (const auto* victim : {&a, &b}) {
    REQUIRE(eventually([&] {
      const std::filesystem::directory_iterator fds("/proc/" + std::to_string(victim->pid()) + "/fd");
      return std::distance(begin(fds), end(fds)) >= 7;  // 3 standard ones, 3 servers, 1 connection
    }));
  }
  Target first, second;
  first.node = "n1";
  first.pids = {a.pid()};
  second.node = "n2";
  second.pids = {b.pid()};
  auto tracer = start({first, second}, quick());
  Victim late(&cgroup, {"serve"});  // a stranger too
  const int tcp_d = late.number("tcp4");
  const Fd clients[] = {connect_to(AF_INET, SOCK_DGRAM, udp_a), connect_to(AF_INET6, SOCK_STREAM, six_b),
                        connect_to(AF_INET, SOCK_DGRAM, udp_b), connect_to(AF_INET, SOCK_STREAM, tcp_c),
                        connect_to(AF_INET, SOCK_STREAM, tcp_d)};
  for (int i = 0; i < 20; ++i) {
    say(early_a, 1);
    for (const auto& client : clients) say(client, 1);
  }
  // The second falls silent, then the first goes on speaking.
  for (int i = 0; i < 40; ++i) {
    say(early_a, 1);
    say(clients[0], 1);
  }
  auto trace = snapshot(*tracer);
  INFO(describe(trace));
  for (const auto& event : trace.events) {
    if (event.type == EventType::nd) CHECK(trace.str(event.node) == "n2");
  }
  for (const int port : {six_b, udp_b}) {
    const auto found = silences(trace, port);
    REQUIRE(found.size() == 1);
    CHECK(trace.str(found[0].node) == "n2");
  }
  CHECK(silences(trace, tcp_c).empty());
  CHECK(silences(trace, tcp_d).empty());
  say(early_b, 20);
  std::this_thread::sleep_for(2 * kDelay);
  trace = snapshot(*tracer);
  REQUIRE(silences(trace, udp_a).size() == 1);
  CHECK(trace.str(silences(trace, udp_a)[0].node) == "n1");
  // Whose SYN nobody saw is named by either of its ports.
  const std::tuple<const Fd*, int, const char*> early[] = {{&early_a, tcp_a, "n1"}, {&early_b, tcp_b, "n2"}};
  for (const auto& [client, port, node] : early) {
    sockaddr_in own{};
    socklen_t length = sizeof own;
    REQUIRE(::getsockname(client->get(), reinterpret_cast<sockaddr*>(&own), &length) == 0);
    auto found = silences(trace, port);
    const auto more = silences(trace, ntohs(own.sin_port));
    found.insert(found.end(), more.begin(), more.end());
    REQUIRE(found.size() == 1);
    CHECK(trace.str(found[0].node) == node);
  }
}

TEST_CASE("cgroups of nodes in one another: a packet counts once, for the innermost") {
  const TestCgroup outer("nested");
  const TestCgroup inner("nested-" + std::to_string(::getpid()) + "/inner");
  REQUIRE(inner.path().parent_path() == outer.path());
  Victim a(&outer, {"serve"}), b(&inner, {"serve"}), c(&inner, {"serve"});
  const int udp_a = a.number("udp4"), udp_b = b.number("udp4"), udp_c = c.number("udp4");
  Target process;
  process.node = "process";
  process.pids = {c.pid()};
  auto tracer = start({target("outer", outer), target("inner", inner), process}, quick());
  const Fd to_a = connect_to(AF_INET, SOCK_DGRAM, udp_a), to_b = connect_to(AF_INET, SOCK_DGRAM, udp_b),
           to_c = connect_to(AF_INET, SOCK_DGRAM, udp_c);
  for (int i = 0; i < 20; ++i) {
    for (const Fd* client : {&to_a, &to_b, &to_c}) say(*client, 1);
  }
  std::this_thread::sleep_for(2 * kDelay);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  const std::pair<int, const char*> expected[] = {{udp_a, "outer"}, {udp_b, "inner"}, {udp_c, "process"}};
  for (const auto& [port, node] : expected) {
    const auto found = silences(trace, port);
    REQUIRE(found.size() == 1);
    CHECK(trace.str(found[0].node) == node);
  }
}

TEST_CASE("who asks seldom and is answered is not silent; who asks in vain is") {
  const OwnNetwork network;
  const TestCgroup cgroup("asks");
  Victim server(nullptr, {"answer", "17171"});
  REQUIRE(server.number("ready") == 1);
  auto tracer = start({target("n1", cgroup)}, quick());
  Victim client(&cgroup, {"talk", "127.0.0.1", "17171", "10", "30", "700"});
  REQUIRE(client.number("connected") == 1);
  std::this_thread::sleep_for(3s);
  auto tcp = [&] {
    std::vector<trace::Event> found;
    for (const auto& event : silences(snapshot(*tracer), 17171)) {
      if (event.protocol == trace::Protocol::tcp) found.push_back(event);
    }
    return found;
  };
  CHECK(tcp().empty());
  network.loopback(false);
  REQUIRE(eventually([&] {
    const auto found = tcp();
    return found.size() == 1 && (found[0].flags & trace::kOpen) != 0 && found[0].duration_ms > 1000;
  }));
  network.loopback(true);
  REQUIRE(eventually([&] {
    const auto found = tcp();
    return found.size() == 1 && (found[0].flags & trace::kOpen) == 0;
  }, 30s));
}

TEST_CASE("a pool of idle connections that are closed in order is not silent") {
  const TestCgroup cgroup("pool");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  auto tracer = start({target("n1", cgroup)}, quick());
  {
    std::vector<Fd> pool;
    for (int i = 0; i < 10; ++i) pool.push_back(connect_to(AF_INET, SOCK_STREAM, tcp4));
    for (const auto& client : pool) REQUIRE(::send(client.get(), "x", 1, MSG_NOSIGNAL) == 1);
    std::this_thread::sleep_for(2 * kDelay);  // used for a moment only
    CHECK(silences(snapshot(*tracer), tcp4).empty());
  }
  std::this_thread::sleep_for(2 * kDelay);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(silences(trace, tcp4).empty());
}
