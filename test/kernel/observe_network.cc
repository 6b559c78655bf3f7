// Silences are detected when they end, and while they last. Orderly ends and rare use are no silences.
#include "observe_network.h"
#include "kernel/attach.h"
#include "kernel/probe.h"
#include "skip.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;

TEST_CASE("a silence of a busy connection is recorded, open and ended, over IPv4, IPv6 and UDP") {
  const bool masked = GENERATE(false, true);
  INFO("without an iterator over files: " << masked);
  if (masked) ::setenv("ROSE_MASK", "task_file", 1);
  const TestCgroup cgroup("silence");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4"), tcp6 = server.number("tcp6"), udp4 = server.number("udp4");
  REQUIRE(udp4 > 0);
  auto tracer = start({target("n1", cgroup)}, quick());
  ::unsetenv("ROSE_MASK");
  struct Case {
    int family, type, port;
    const char* address;
    trace::Protocol protocol;
  };
  for (const auto& c : {Case{AF_INET, SOCK_STREAM, tcp4, "127.0.0.1", trace::Protocol::tcp},
                        Case{AF_INET6, SOCK_STREAM, tcp6, "::1", trace::Protocol::tcp},
                        Case{AF_INET, SOCK_DGRAM, udp4, "127.0.0.1", trace::Protocol::udp}}) {
    INFO(c.address << " " << c.port);
    Sender client(c.family, c.type, c.port);
    client.send_steadily();
    client.fall_silent();
    const auto open = silences(until_missed(*tracer, client), client);
    REQUIRE(open.size() == 1);
    CHECK(open[0].duration_ms >= kDelay.count());
    client.send(1);
    const auto after = until_silence_ended(*tracer, client);
    INFO(describe(after));
    const auto ended = silences(after, client);
    REQUIRE(ended.size() == 1);
    CHECK_FALSE(is_open(ended[0]));
    CHECK(ended[0].duration_ms >= open[0].duration_ms);
    if (c.type == SOCK_DGRAM) CHECK(ended[0].packets + 1 == client.packets());
    else CHECK(ended[0].packets >= 5);  // because TCP combines writes
    CHECK(after.str(ended[0].src) == c.address);
    CHECK(after.str(ended[0].dst) == c.address);
    CHECK(ended[0].dport == c.port);  // because the server's port is reported, and not the client's ephemeral port
    CHECK(ended[0].sport == 0);
    CHECK(ended[0].protocol == c.protocol);
    // Only the kernel's state of a TCP connection shows whether data was unanswered. Without the iterator, it is
    // unknown.
    CHECK((ended[0].flags & (trace::kOutstanding | trace::kIdle)) ==
          (c.type == SOCK_STREAM && !masked ? trace::kIdle : 0));
    CHECK(after.str(ended[0].node) == "n1");
  }
}

TEST_CASE("a cleanly closed connection is not silent") {
  const TestCgroup cgroup("closed");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  auto tracer = start({target("n1", cgroup)}, quick());
  Sender client(AF_INET, SOCK_STREAM, tcp4);
  {
    const Fd other = connect_to(AF_INET, SOCK_STREAM, tcp4);
    client.send_steadily();
    client.close();
  }
  std::this_thread::sleep_for(2 * kDelay);
  const auto closed = snapshot(*tracer);
  INFO(describe(closed));
  CHECK(silences(closed, client).empty());
  // The next connection of the same pair does not end a silence either.
  Sender again(AF_INET, SOCK_STREAM, tcp4);
  again.send(3);
  const auto trace = snapshot(*tracer);
  for (const auto& event : silences(trace, client)) CHECK(again.explains(event));
}

TEST_CASE("a reset, and the end of the traced process, end a connection without a silence") {
  const TestCgroup cgroup("reset");
  auto tracer = start({target("n1", cgroup)}, quick());
  {
    Victim server(&cgroup, {"serve"});
    const int tcp4 = server.number("tcp4");
    Sender client(AF_INET, SOCK_STREAM, tcp4);
    client.send_steadily();
    const linger hard{1, 0};
    ::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    client.close();
    std::this_thread::sleep_for(2 * kDelay);
    CHECK(silences(snapshot(*tracer), client).empty());
  }
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  Sender client(AF_INET, SOCK_STREAM, tcp4);
  client.send_steadily();
  ::kill(server.pid(), SIGKILL);
  server.wait();
  client.note_pause();
  std::this_thread::sleep_for(2 * kDelay);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(silences(trace, client).empty());
}

TEST_CASE("an abandoned connection to a partitioned peer is a silence, to an answering peer it is not") {
  const OwnNetwork network;
  const TestCgroup cgroup("given-up");
  for (const bool cut : {false, true}) {
    INFO("cut: " << cut);
    Victim server(&cgroup, {"serve"});
    const int tcp4 = server.number("tcp4");
    auto tracer = start({target("n1", cgroup)}, quick());
    Sender client(AF_INET, SOCK_STREAM, tcp4);
    client.send_steadily();
    client.fall_silent();
    if (cut) network.loopback(false);
    std::this_thread::sleep_for(3 * kDelay);
    const std::int64_t given_up = monotonic_ns();
    ::kill(server.pid(), SIGKILL);  // the kernel then sends a FIN and not a reset, because no data is in flight
    server.wait();
    if (!cut) {
      std::this_thread::sleep_for(3 * kDelay);
      const auto trace = snapshot(*tracer);
      INFO(describe(trace));
      CHECK(silences(trace, client).empty());
      continue;
    }
    // The silence begins at the earliest half a second after the FIN, because a reachable peer would have answered the
    // FIN by then. Until then, the connection was idle.
    REQUIRE(eventually([&] {
      const auto found = not_idle(silences(snapshot(*tracer), client));
      return found.size() == 1 && is_open(found[0]);
    }));
    const std::int64_t missed_ms = (monotonic_ns() - given_up) / 1'000'000;
    network.loopback(true);
    // The kernel retransmits the FIN, and the peer answers.
    std::vector<trace::Event> ended;
    REQUIRE(eventually([&] {
      ended = silences(snapshot(*tracer), client);
      return ended.size() == 1 && !is_open(ended[0]);
    }));
    CHECK(missed_ms >= 490);
    CHECK(ended[0].duration_ms >= 3 * kDelay.count() + missed_ms - 10);
    // The pair no longer has an open connection, so what follows is no silence.
    std::this_thread::sleep_for(3 * kDelay);
    CHECK(silences(snapshot(*tracer), client).size() == 1);
  }
}

TEST_CASE("a reconnect from another ephemeral port continues the pair's statistics") {
  const TestCgroup cgroup("reconnect");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  auto tracer = start({target("n1", cgroup)}, quick());
  Sender first(AF_INET, SOCK_STREAM, tcp4);  // stays open, like a connection that is partitioned and not closed
  first.send_steadily();
  first.fall_silent();
  (void)until_missed(*tracer, first);
  Sender second(AF_INET, SOCK_STREAM, tcp4);
  second.send(1);
  const auto found = silences(snapshot(*tracer), first);
  REQUIRE(found.size() == 1);
  CHECK_FALSE(is_open(found[0]));
}

TEST_CASE("a silence of a rarely used connection is recorded once its pattern is known") {
  const TestCgroup cgroup("rare");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  auto tracer = start({target("n1", cgroup)}, quick());
  Sender client(AF_INET, SOCK_STREAM, tcp4);
  // All pauses are about equally long, and therefore usual, unless the scheduler made one several times as long.
  std::size_t unusual = 0;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t begin = monotonic_ns();
    client.send(1);
    client.fall_silent();
    std::this_thread::sleep_for(kDelay + 50ms);
    unusual += monotonic_ns() - begin > std::chrono::nanoseconds(3 * kDelay).count() ? 1 : 0;
  }
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(silences(trace, client).size() <= 2 + unusual);
}

TEST_CASE("silences of the nodes' addresses on whole interfaces are recorded by TCX or XDP") {
  const bool masked = GENERATE(false, true);
  INFO("without TCX: " << masked);
  const OwnNetwork network;
  const TestCgroup cgroup("interface");
  Victim server(nullptr, {"serve"});  // the process belongs to no target, so it is recognised by its address
  const int tcp4 = server.number("tcp4");
  Target node = target("n1", cgroup);
  node.addresses = {"127.0.0.1"};
  auto options = quick();
  options.interfaces = {"lo"};
  if (masked) ::setenv("ROSE_MASK", "tcx", 1);
  auto started = Tracer::start(options, {node});
  options.interfaces = {"rose-none0"};
  const auto refused = Tracer::start(options, {node});
  options.interfaces = {"lo"};
  ::setenv("ROSE_MASK", "tcx,xdp", 1);
  const auto neither = Tracer::start(options, {node});
  ::unsetenv("ROSE_MASK");  // do this before anything can fail, because the following cases use the same environment
  REQUIRE(!neither);
  CHECK(neither.error().kind == ErrorKind::environment);
  CHECK(neither.error().hint.find("Linux 5.18") != std::string::npos);
  if (!rose::kernel::xdp_reads_packets() && (masked || !rose::kernel::probe("tcx").ok))
    ::rose::test::skip_case("needs TCX links (Linux 6.6) or XDP programs that read packets (5.18)");
  REQUIRE(!refused);
  CHECK(refused.error().kind == ErrorKind::usage);
  REQUIRE(started);
  const auto tracer = std::move(*started);
  Sender client(AF_INET, SOCK_STREAM, tcp4);
  client.send_steadily();
  client.fall_silent();
  // Both ends are on this interface, so the packets of the server are recorded, too, and they stop as well.
  const auto to_server = [&](bool open) {
    const auto trace = snapshot(*tracer);
    const auto found = silences(trace, client);
    return std::count_if(found.begin(), found.end(), [&](const auto& event) {
      return event.dport == tcp4 && event.duration_ms >= kDelay.count() && is_open(event) == open;
    });
  };
  REQUIRE(eventually([&] { return to_server(true) == 1; }));
  client.send(1);
  // The tracer's BPF program runs when the packet is received. On a busy machine, this is later than when it is sent.
  REQUIRE(eventually([&] { return to_server(false) == 1; }));
  CHECK(to_server(true) == 0);
}

TEST_CASE("a node in its own network is not silent towards itself") {
  const OwnNetwork network;
  const TestCgroup alone("alone"), beside("beside");
  Victim own(&alone, {"serve"}), shared(&beside, {"serve"});
  Target first = target("n1", alone);
  first.own_network = true;
  auto tracer = start({first, target("n2", beside)}, quick());
  Sender to_itself(AF_INET, SOCK_STREAM, own.number("tcp4")), to_other(AF_INET, SOCK_STREAM, shared.number("tcp4"));
  for (Sender* sender : {&to_itself, &to_other}) sender->send_steadily();
  for (Sender* sender : {&to_itself, &to_other}) sender->fall_silent();
  (void)until_missed(*tracer, to_other);
  const auto missed = [&] { return silences(snapshot(*tracer), to_itself.port()); };
  CHECK(missed().empty());
  for (Sender* sender : {&to_itself, &to_other}) sender->send(1);
  (void)until_silence_ended(*tracer, to_other);
  CHECK(missed().empty());
}

TEST_CASE("nodes whose processes share a cgroup each have their own silences") {
  const TestCgroup cgroup("shared");
  Victim a(&cgroup, {"serve"}), b(&cgroup, {"serve"}), stranger(&cgroup, {"serve"});
  const int tcp_a = a.number("tcp4"), udp_a = a.number("udp4"), tcp_b = b.number("tcp4"), six_b = b.number("tcp6"),
            udp_b = b.number("udp4"), tcp_c = stranger.number("tcp4");
  REQUIRE(udp_b > 0);
  // Some connections exist before tracing begins.
  Sender early_a(AF_INET, SOCK_STREAM, tcp_a), early_b(AF_INET, SOCK_STREAM, tcp_b);
  // Wait until the servers have accepted them, because the tracer would find unaccepted connections only a second
  // later.
  for (const auto* victim : {&a, &b}) {
    REQUIRE(eventually([&] {
      const std::filesystem::directory_iterator fds("/proc/" + std::to_string(victim->pid()) + "/fd");
      return std::distance(begin(fds), end(fds)) >= 7;  // 3 standard descriptors, 3 of servers, 1 of a connection
    }));
  }
  Target first, second;
  first.node = "n1";
  first.pids = {a.pid()};
  second.node = "n2";
  second.pids = {b.pid()};
  auto tracer = start({first, second}, quick());
  Victim late(&cgroup, {"serve"});  // this process belongs to no target either
  const int tcp_d = late.number("tcp4");
  Sender to_a(AF_INET, SOCK_DGRAM, udp_a), six_to_b(AF_INET6, SOCK_STREAM, six_b), to_b(AF_INET, SOCK_DGRAM, udp_b),
      to_c(AF_INET, SOCK_STREAM, tcp_c), to_d(AF_INET, SOCK_STREAM, tcp_d);
  for (int i = 0; i < 20; ++i) {
    for (Sender* sender : {&early_a, &to_a, &six_to_b, &to_b, &to_c, &to_d}) sender->send(1);
  }
  // Traffic to the second node stops, while traffic to the first node continues.
  for (Sender* sender : {&six_to_b, &to_b, &to_c, &to_d}) {
    sender->send_steadily();
    sender->fall_silent();
  }
  trace::Trace trace;
  const auto missed = [&](const Sender& sender) {
    const auto found = silences(trace, sender);
    return std::count_if(found.begin(), found.end(), is_open) == 1;
  };
  const bool both = eventually([&] {
    for (int i = 0; i < 5; ++i) early_a.send(1), to_a.send(1);
    trace = snapshot(*tracer);
    return missed(six_to_b) && missed(to_b);
  });
  INFO(describe(trace));
  REQUIRE(both);
  for (const auto& event : trace.events) {
    if (event.type != EventType::nd || early_a.explains(event) || to_a.explains(event)) continue;
    CHECK(trace.str(event.node) == "n2");
  }
  for (const Sender* sender : {&six_to_b, &to_b}) {
    const auto found = silences(trace, *sender);
    REQUIRE(found.size() == 1);
    CHECK(trace.str(found[0].node) == "n2");
  }
  CHECK(silences(trace, tcp_c).empty());
  CHECK(silences(trace, tcp_d).empty());
  for (Sender* sender : {&early_a, &to_a}) sender->fall_silent();
  early_b.send_steadily();
  early_b.fall_silent();
  // The SYN of these connections was not recorded, so the tracer may take either port for the server's port.
  const auto of_either_port = [&](const Sender& sender) {
    sockaddr_in own{};
    socklen_t length = sizeof own;
    REQUIRE(::getsockname(sender.fd(), reinterpret_cast<sockaddr*>(&own), &length) == 0);
    auto found = silences(trace, sender);
    const auto more = silences(trace, ntohs(own.sin_port));
    found.insert(found.end(), more.begin(), more.end());
    std::erase_if(found, [&](const auto& event) { return sender.explains(event); });
    return found;
  };
  const bool all = eventually([&] {
    trace = snapshot(*tracer);
    return missed(to_a) && !of_either_port(early_a).empty() && !of_either_port(early_b).empty();
  });
  INFO(describe(trace));
  REQUIRE(all);
  REQUIRE(silences(trace, to_a).size() == 1);
  CHECK(trace.str(silences(trace, to_a)[0].node) == "n1");
  const std::pair<const Sender*, const char*> early[] = {{&early_a, "n1"}, {&early_b, "n2"}};
  for (const auto& [sender, node] : early) {
    const auto found = of_either_port(*sender);
    REQUIRE(found.size() == 1);
    CHECK(trace.str(found[0].node) == node);
  }
}

TEST_CASE("a packet in nested node cgroups is counted once, for the innermost") {
  const TestCgroup outer("nested");
  const TestCgroup inner("nested-" + std::to_string(::getpid()) + "/inner");
  REQUIRE(inner.path().parent_path() == outer.path());
  Victim a(&outer, {"serve"}), b(&inner, {"serve"}), c(&inner, {"serve"});
  const int udp_a = a.number("udp4"), udp_b = b.number("udp4"), udp_c = c.number("udp4");
  Target process;
  process.node = "process";
  process.pids = {c.pid()};
  auto tracer = start({target("outer", outer), target("inner", inner), process}, quick());
  Sender to_a(AF_INET, SOCK_DGRAM, udp_a), to_b(AF_INET, SOCK_DGRAM, udp_b), to_c(AF_INET, SOCK_DGRAM, udp_c);
  const std::pair<Sender*, const char*> expected[] = {{&to_a, "outer"}, {&to_b, "inner"}, {&to_c, "process"}};
  for (int i = 0; i < 20; ++i) {
    for (const auto& [sender, node] : expected) sender->send(1);
  }
  trace::Trace trace;
  REQUIRE(eventually([&] {
    trace = snapshot(*tracer);
    return std::all_of(std::begin(expected), std::end(expected),
                       [&](const auto& one) { return !silences(trace, *one.first).empty(); });
  }));
  INFO(describe(trace));
  for (const auto& [sender, node] : expected) {
    const auto found = silences(trace, *sender);
    REQUIRE(found.size() == 1);
    CHECK(trace.str(found[0].node) == node);
  }
}

TEST_CASE("infrequent requests are a silence only if they are not answered") {
  const OwnNetwork network;
  const TestCgroup cgroup("asks");
  Victim server(nullptr, {"answer", "17171"});
  REQUIRE(server.number("ready") == 1);
  // If a peer answers late compared with the interval between requests, the tracer takes its answers for messages that
  // the peer sends without a request. So on a busy machine, the client sends requests less often.
  std::unique_ptr<Tracer> tracer;
  std::unique_ptr<Victim> client;
  constexpr int kBurst = 30;
  bool in_time = false;
  for (int period = 10; !in_time; period *= 4) {
    REQUIRE(period < 3000);
    INFO("asked every " << period << " ms");
    tracer = start({target("n1", cgroup)}, quick());
    client = std::make_unique<Victim>(
        &cgroup, std::vector<std::string>{"talk", "127.0.0.1", "17171", std::to_string(period), std::to_string(kBurst),
                                          std::to_string(std::max(700, 8 * period))});
    REQUIRE(client->number("connected") == 1);
    in_time = true;
    for (int burst = 0; burst < 4 && in_time; ++burst) {  // with three idle periods between them
      const int late = client->number("late");
      REQUIRE(late >= 0);
      in_time = late <= kBurst / 16;
    }
  }
  auto tcp = [&] {
    std::vector<trace::Event> found;
    for (const auto& event : not_idle(silences(snapshot(*tracer), 17171))) {
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
    return found.size() == 1 && !is_open(found[0]);
  }));
}

TEST_CASE("idle pooled connections that are closed cleanly are not silent") {
  const TestCgroup cgroup("pool");
  Victim server(&cgroup, {"serve"});
  const int tcp4 = server.number("tcp4");
  auto tracer = start({target("n1", cgroup)}, quick());
  {
    std::vector<Fd> pool;
    for (int i = 0; i < 10; ++i) pool.push_back(connect_to(AF_INET, SOCK_STREAM, tcp4));
    for (const auto& client : pool) REQUIRE(::send(client.get(), "x", 1, MSG_NOSIGNAL) == 1);
    std::this_thread::sleep_for(2 * kDelay);  // the connection is used only for a moment
    CHECK(silences(snapshot(*tracer), tcp4).empty());
  }
  std::this_thread::sleep_for(2 * kDelay);
  const auto trace = snapshot(*tracer);
  INFO(describe(trace));
  CHECK(silences(trace, tcp4).empty());
}
