// Partitions in network namespaces and on one host: which nodes are partitioned, which are not, and how the partition
// heals.
#include <cstdlib>

#include "inject_ping.h"
#include "skip.h"

using namespace rose;
using namespace rose::test;

namespace {

struct Trio : ThreeNodes {
  explicit Trio(config::Network network = config::Network::netns, int base = 7200, bool six = false)
      : ThreeNodes(network, base, six) {
    const std::string server = six ? "server6" : "server", udp = six ? "udp6" : "udp";
    for (int i = 0; i < 3; ++i) {
      add({server, std::to_string(port(i)), server, std::to_string(port(i) + 50), udp, std::to_string(port(i)), "print",
           "up", "gate", "heal", "print", "heal now", "sleep", "100000"});
      is_ready_when("up");
    }
  }
  // The test ends faults that have this `until`. On a busy machine, a fault with a duration might end before all checks
  // are made.
  static constexpr const char* kUntilHealed = "until = [ { log = \"heal now\", node = \"n3\" } ]\n";
  void heal() {
    touch("n3/heal");
    REQUIRE(eventually([&] { return injector->finished(); }));
  }
  // On a busy machine an answer may take long, so the limit is long where an answer is expected.
  Answer answer(int from, int to, const std::string& how = "tcp", int offset = 0,
                const std::string& limit_ms = "60000") {
    return end_ping(
        start_ping(*this, static_cast<std::size_t>(from), {how, ip(to), std::to_string(port(to) + offset), limit_ms}));
  }
  bool cut_off(int from, int to, const std::string& how = "tcp", int offset = 0) {
    return answer(from, to, how, offset, "250") != kEcho;
  }
  // Starts a connection that is in use when this function returns.
  pid_t stream(int from, int to, const std::string& limit_ms) {
    REQUIRE(reaches(from, to));
    int in_use[2];
    REQUIRE(::pipe2(in_use, O_CLOEXEC) == 0);
    const int passed = ::fcntl(in_use[1], F_DUPFD, 3);
    const pid_t child = start_ping(*this, static_cast<std::size_t>(from),
                                   {"stream", ip(to), std::to_string(port(to)), limit_ms, "-", std::to_string(passed)});
    ::close(passed);
    ::close(in_use[1]);
    char byte = 0;
    REQUIRE(::read(in_use[0], &byte, 1) == 1);
    ::close(in_use[0]);
    return child;
  }
  bool reaches(int from, int to, const std::string& how = "tcp", int offset = 0) {
    return answer(from, to, how, offset) == kEcho;
  }
  bool client_reaches(int to, const std::string& source = {}, const std::string& limit_ms = "60000") {
    std::vector<std::string> words{kPinger, "tcp", ip(to), std::to_string(port(to)), limit_ms};
    if (!source.empty()) words.push_back(source);
    auto command = deployment->spawn(words, "client", 90 * kSecond);
    REQUIRE(command);
    return (*command)->wait().ok();
  }
};

void both_ways(Trio& rig) {
  rig.prepare(fmt::format("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n2\"]\n{}",
                          Trio::kUntilHealed));
  rig.add_addresses();
  CHECK(rig.reaches(0, 1));
  CHECK(rig.reaches(1, 0, "udp"));
  rig.begin();
  rig.wait_fired();
  CHECK(rig.cut_off(0, 1));
  CHECK(rig.cut_off(1, 0));
  CHECK(rig.cut_off(0, 1, "udp"));
  // The partition drops packets silently, so sending a datagram succeeds.
  CHECK(rig.reaches(0, 1, "send"));
  CHECK(rig.reaches(0, 2));
  CHECK(rig.reaches(1, 2));
  CHECK(rig.reaches(2, 0));
  CHECK(rig.client_reaches(0));
  CHECK(rig.client_reaches(1));
  rig.heal();
  CHECK(rig.reaches(0, 1));
  CHECK(rig.reaches(1, 0));
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.injected > 0);
  CHECK(outcome.ended_ns > outcome.fired_ns);
}

void one_way(Trio& rig, const std::string& direction) {
  rig.start(fmt::format(R"(
[[fault]]
id = "cut"
kind = "partition"
node = "n1"
peers = ["n2"]
direction = "{}"
protocol = "udp"
[[fault]]
id = "ports"
kind = "partition"
node = "n3"
peers = ["n1"]
ports = [{}]
)",
                        direction, rig.port(0)));
  rig.wait_fired(1);
  // Datagrams pass in one direction only, so no echo returns, whichever direction is cut. Another test checks that
  // the direction is the requested one.
  CHECK(rig.cut_off(0, 1, "udp"));
  CHECK(rig.reaches(0, 1));
  CHECK(rig.cut_off(2, 0));
  CHECK(rig.reaches(2, 0, "tcp", 50));
  CHECK(rig.reaches(2, 1));
  rig.injector->disarm();
  CHECK(rig.reaches(0, 1, "udp"));
  CHECK(rig.reaches(2, 0));
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).injected >= 1);
  CHECK(outcomes.at(1).injected >= 1);
}

}  // namespace

TEST_CASE("a partition ends at its exact time") {
  for (const auto network : {config::Network::netns, config::Network::host}) {
    Trio rig(network, 7300);
    rig.start("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\nduration = \"500ms\"\n");
    REQUIRE(eventually([&] { return rig.injector->finished(); }));
    CHECK(rig.reaches(0, 1));
    CHECK(rig.reaches(1, 0));
    const auto outcome = rig.finish().at(0);
    CHECK(outcome.fired);
    CHECK(*outcome.ended_ns - outcome.fired_ns == 500 * kMillisecond);
  }
}

TEST_CASE("netns: no packet crosses a partition once it was reported") {
  for (int round = 0; round < 5; ++round) {
    Trio rig;
    rig.prepare("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n2\"]\n");
    // Counters of the node's network stack, which do not depend on what the node's programs have read.
    const auto packets = [&](std::size_t node, std::size_t field) {
      const auto pid = rig.deployment->main_pid(node);
      const auto text = read_file(fmt::format("/proc/{}/net/snmp", pid)).value_or("");
      for (const std::string& line : split(text, '\n')) {
        const auto words = split(line, ' ');
        if (words.front() == "Ip:" && words.at(1) != "Forwarding") return std::stoull(words.at(field));
      }
      FAIL("no counters of node " << node);
      return 0ULL;
    };
    constexpr std::size_t kReceived = 3, kSent = 10;
    std::vector<pid_t> floods;
    for (int i = 0; i < 3; ++i)
      floods.push_back(start_ping(rig, 0, {"flood", rig.ip(1), std::to_string(rig.port(1)), "60000"}));
    REQUIRE(eventually([&] { return packets(1, kReceived) > 1000; }));
    rig.begin();
    rig.wait_fired();
    const auto received = packets(1, kReceived), sent = packets(0, kSent);
    CHECK(eventually([&] { return packets(0, kSent) > sent + 10'000; }));
    CHECK(packets(1, kReceived) == received);
    for (const pid_t flood : floods) {
      ::kill(flood, SIGKILL);
      ::waitpid(flood, nullptr, 0);
    }
    CHECK(rig.finish().at(0).injected > 1000);
  }
}

TEST_CASE("netns: a partition cuts both directions, heals, and does not affect others and clients") {
  Trio rig;
  both_ways(rig);
}

TEST_CASE("host: a partition separates nodes that share an address") {
  Trio rig(config::Network::host, 7310);
  both_ways(rig);
}

TEST_CASE("netns: the clsact fallback drops packets as TCX links do") {
  ::setenv("ROSE_MASK", "tcx", 1);
  Trio rig;
  both_ways(rig);
  ::unsetenv("ROSE_MASK");
}

TEST_CASE("netns: a partition can be limited to a direction, a protocol and a port") {
  Trio rig;
  SECTION("out") { one_way(rig, "out"); }
  SECTION("in") { one_way(rig, "in"); }
}

TEST_CASE("host: a partition can be limited to a direction, a protocol and a port") {
  Trio rig(config::Network::host, 7320);
  SECTION("out") { one_way(rig, "out"); }
  SECTION("in") { one_way(rig, "in"); }
}

TEST_CASE("direction = out drops a node's outgoing packets only, direction = in its incoming ones") {
  for (const auto network : {config::Network::netns, config::Network::host}) {
    for (const std::string direction : {"out", "in"}) {
      Trio rig(network, 7330);
      rig.start(fmt::format(
          "[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n2\"]\ndirection = \"{}\"\n",
          direction));
      rig.wait_fired();
      const auto dropped = [&] { return rig.injector->outcomes().at(0).injected; };
      REQUIRE(dropped() == 0);
      // For "out", the request is dropped, once. For "in", the request arrives, and its echo is dropped.
      CHECK(rig.cut_off(0, 1, "udp"));
      CHECK(dropped() == 1);
      // From n2, "out" drops n1's echo, and "in" drops the request.
      CHECK(rig.cut_off(1, 0, "udp"));
      CHECK(dropped() == 2);
    }
  }
}

TEST_CASE("stacks of a partition show the thread that waits for the other side") {
  Trio rig;
  rig.stacks = true;
  rig.config.nodes[2].command = {kVictim, "server", "7200",  "print", "up",    "gate",
                                 "go",    "create", "begin", "sleep", "100000"};
  rig.start(R"(
[[fault]]
id = "cut"
kind = "partition"
node = "n1"
peers = ["n2"]
when = [ { syscall = "openat", path = "*/begin", node = "n3" } ]
)");
  const pid_t across = rig.stream(0, 1, "60000");
  const pid_t beside = rig.stream(0, 2, "60000");
  rig.touch("n3/go");
  rig.wait_fired();
  // The injector looks for waiting threads 30 ms, 300 ms and one second after the partition began.
  ::usleep(1'500'000);
  const auto outcome = rig.finish().at(0);
  for (const pid_t child : {across, beside}) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  // The server on the other side may wait for the client, too. A thread that is connected to n3 does not wait for n2.
  CHECK(std::none_of(outcome.stacks.begin(), outcome.stacks.end(),
                     [&](const auto& one) { return one.tid == beside || one.node == "n3"; }));
  const auto found =
      std::find_if(outcome.stacks.begin(), outcome.stacks.end(), [&](const auto& one) { return one.tid == across; });
  REQUIRE(found != outcome.stacks.end());
  const auto& stack = *found;
  INFO(stack.incomplete);
  CHECK(stack.node == "n1");
  CHECK(stack.why == "waits in poll for n2 (10.251.9.2:7200), which is partitioned off");
  CHECK(std::any_of(stack.frames.begin(), stack.frames.end(),
                    [](const auto& frame) { return frame.function == "main"; }));
}

TEST_CASE("loss drops a share of the packets") {
  Trio rig;
  rig.start(R"(
[[fault]]
id = "lossy"
kind = "partition"
node = "n1"
peers = ["n2"]
direction = "out"
loss = 0.5
)");
  rig.wait_fired();
  for (int i = 0; i < 100; ++i) CHECK(rig.reaches(0, 1, "send"));
  const auto outcome = rig.finish().at(0);
  // With a loss of 50 %, the number of dropped packets is outside this range in only about one of 10^9 runs.
  CHECK(outcome.injected > 20);
  CHECK(outcome.injected < 80);
}

TEST_CASE("a partition begins at a call, ends by its `until`, and later faults follow it") {
  Trio rig;
  rig.config.nodes[2].command = {kVictim, "server", "7200", "print", "up",       "gate",  "go",    "create",
                                 "begin", "gate",   "heal", "print", "heal now", "sleep", "100000"};
  rig.start(R"(
[[fault]]
id = "cut"
kind = "partition"
node = "n1"
until = [ { log = "heal now", node = "n3" } ]
when = [ { syscall = "openat", path = "*/begin", node = "n3" } ]
[[fault]]
id = "then"
kind = "partition"
node = "n2"
peers = ["n3"]
after = ["cut"]
when = [ { elapsed = "100ms" } ]
)");
  CHECK(rig.reaches(0, 1));
  rig.touch("n3/go");
  rig.wait_fired(1);
  CHECK(rig.cut_off(0, 1));
  CHECK(rig.cut_off(0, 2));
  CHECK(rig.cut_off(1, 2));
  rig.touch("n3/heal");
  REQUIRE(eventually([&] { return rig.reaches(0, 1); }));
  CHECK(rig.cut_off(1, 2));
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).ended_ns > outcomes.at(0).fired_ns);
  const auto gap = outcomes.at(1).fired_ns - outcomes.at(0).fired_ns;
  CHECK(gap >= 100 * kMillisecond);  // there is no upper bound, because the report takes longer on a busy machine
}

TEST_CASE("IPv6 is partitioned as IPv4 is") {
  SECTION("netns") {
    Trio rig(config::Network::netns, 7200, true);
    rig.prepare(fmt::format("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n2\"]\n{}",
                            Trio::kUntilHealed));
    rig.add_addresses();
    CHECK(rig.reaches(0, 1));
    rig.begin();
    rig.wait_fired();
    CHECK(rig.cut_off(0, 1));
    CHECK(rig.cut_off(1, 0, "udp"));
    CHECK(rig.reaches(0, 2));
    rig.heal();
    CHECK(rig.reaches(0, 1));
  }
  SECTION("host") {
    Trio rig(config::Network::host, 7340, true);
    both_ways(rig);
  }
}

namespace {

// Before Linux 6.6, packets between nodes with the same address cannot be rejected.
bool can_reject_on_host() { return kernel::probe("tcx").ok; }

void rejects(Trio& rig) {
  rig.prepare(fmt::format(
      "[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n2\"]\naction = \"reject\"\n{}",
      Trio::kUntilHealed));
  rig.add_addresses();
  CHECK(rig.reaches(0, 1, "udp"));
  CHECK(rig.reaches(1, 0, "udp"));
  const pid_t out = rig.stream(0, 1, "300000"), in = rig.stream(1, 0, "300000"), other = rig.stream(0, 2, "1000");
  rig.begin();
  rig.wait_fired();
  // On both sides, open connections, new connections and senders of datagrams get an error at once.
  CHECK(end_ping(out) == kRefused);
  CHECK(end_ping(in) == kRefused);
  for (const auto& [from, to] : {std::pair{0, 1}, std::pair{1, 0}}) {
    CHECK(rig.answer(from, to) == kRefused);
    CHECK(rig.answer(from, to, "udp") == kRefused);
  }
  CHECK(rig.reaches(0, 2));
  CHECK(rig.reaches(2, 1, "udp"));
  CHECK(end_ping(other) == kEcho);
  rig.heal();
  CHECK(rig.reaches(0, 1));
  CHECK(rig.reaches(1, 0, "udp"));
  const auto outcome = rig.finish().at(0);
  INFO(outcome.detail);
  CHECK(outcome.injected >= 6);
  CHECK(outcome.detail.find(" of them answered") != std::string::npos);
}

}  // namespace

TEST_CASE("netns: rejected senders are notified, TCP by a reset and UDP by an unreachable port") {
  SECTION("IPv4") {
    Trio rig;
    rejects(rig);
  }
  SECTION("IPv6") {
    Trio rig(config::Network::netns, 7200, true);
    rejects(rig);
  }
}

TEST_CASE("host: rejected senders are notified, TCP by a reset and UDP by an unreachable port") {
  if (!can_reject_on_host()) rose::test::skip_case("needs TCX links (Linux 6.6)");
  SECTION("IPv4") {
    Trio rig(config::Network::host, 7350);
    rejects(rig);
  }
  SECTION("IPv6") {
    Trio rig(config::Network::host, 7360, true);
    rejects(rig);
  }
}

TEST_CASE("host: without TCX links action = reject is refused with a hint") {
  ::setenv("ROSE_MASK", "tcx", 1);
  Trio rig(config::Network::host, 7365);
  const auto prepared =
      rig.try_prepare("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\naction = \"reject\"\n");
  ::unsetenv("ROSE_MASK");
  REQUIRE_FALSE(prepared.has_value());
  CHECK(prepared.error().message.find("cannot answer packets") != std::string::npos);
  CHECK(prepared.error().hint.find("Linux 6.6") != std::string::npos);
}

TEST_CASE("several nodes on one side of a partition, with one direction rejected") {
  for (const auto network : {config::Network::netns, config::Network::host}) {
    if (network == config::Network::host && !can_reject_on_host()) continue;
    Trio rig(network, 7370);
    rig.start(R"(
[[fault]]
id = "cut"
kind = "partition"
node = ["n1", "n2"]
when = [ { elapsed = "1ms" } ]
[[fault]]
id = "one-way"
kind = "partition"
node = "n2"
peers = ["n1"]
direction = "in"
protocol = "udp"
action = "reject"
)");
    rig.wait_fired(0);
    rig.wait_fired(1);
    CHECK(rig.reaches(0, 1));
    CHECK(rig.reaches(1, 0));
    CHECK(rig.cut_off(0, 2));
    CHECK(rig.cut_off(1, 2));
    CHECK(rig.cut_off(2, 0));
    CHECK(rig.cut_off(2, 1));
    // On the host network, rose learns the address at which a node listens only from the first packet to that address.
    if (rig.on_host()) CHECK(rig.cut_off(0, 1, "udp"));
    CHECK(rig.answer(0, 1, "udp") == kRefused);
    const auto outcomes = rig.finish();
    CHECK(outcomes.at(0).injected > 0);
    CHECK(outcomes.at(1).injected > 0);
  }
}

TEST_CASE("addresses outside of the deployment, single or a range, can be partitioned") {
  SECTION("netns") {
    for (const std::string action : {"drop", "reject"}) {
      Trio rig;
      rig.prepare(
          fmt::format("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"10.251.9.254\"]\n"
                      "action = \"{}\"\n",
                      action));
      CHECK(rig.client_reaches(0));
      rig.begin();
      rig.wait_fired();
      CHECK_FALSE(rig.client_reaches(0, {}, "500"));
      CHECK(rig.client_reaches(1));
      CHECK(rig.reaches(0, 1));
      CHECK(rig.reaches(1, 0));
      rig.injector->disarm();
      CHECK(rig.client_reaches(0));
      CHECK(rig.finish().at(0).injected > 0);
    }
  }
  SECTION("host") {
    for (const std::string direction : {"both", "out", "in"}) {
      Trio rig(config::Network::host, 7380);
      rig.prepare(
          fmt::format("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"127.0.3.0/24\"]\n"
                      "direction = \"{}\"\n",
                      direction));
      CHECK(rig.client_reaches(0, "127.0.3.7"));
      rig.begin();
      rig.wait_fired();
      CHECK_FALSE(rig.client_reaches(0, "127.0.3.7", "500"));
      CHECK(rig.client_reaches(0, "127.0.4.7"));
      CHECK(rig.client_reaches(1, "127.0.3.7"));
      CHECK(rig.reaches(0, 1));
      CHECK(rig.finish().at(0).injected > 0);
    }
  }
}

TEST_CASE("a partition can name hundreds of ports") {
  for (const auto network : {config::Network::netns, config::Network::host}) {
    Trio rig(network, 7390);
    std::string ports;
    for (int i = 0; i < 300; ++i) ports += fmt::format("{}, ", 20000 + i);
    rig.start(fmt::format("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\nports = [ {} {} ]\n", ports,
                          rig.port(1) + 50));
    rig.wait_fired();
    CHECK(rig.reaches(0, 1));
    CHECK(rig.cut_off(0, 1, "tcp", 50));
    CHECK(rig.reaches(0, 2, "udp"));
  }
}

TEST_CASE("attached nodes are partitioned with drop and reject as others are") {
  for (const std::string action : {"drop", "reject"}) {
    if (action == "reject" && !can_reject_on_host()) continue;
    Rig rig;
    rig.allow_attached = true;
    for (int i = 0; i < 2; ++i) {
      rig.add(
          {"server", std::to_string(7420 + i), "print", "up", "gate", "heal", "print", "heal now", "sleep", "100000"});
    }
    auto& theirs = rig.config.nodes[1];
    rig.config.deployment.setup = config::Command{
        "/bin/sh", "-c", "setsid \"$0\" server 7421 sleep 100000 > theirs.log 2>&1 & echo $! > theirs.pid", kVictim};
    theirs.command.clear();
    theirs.attach = config::Attach{.pid_file = "theirs.pid", .container = {}, .unit = {}, .cgroup = {}};
    theirs.ready = config::Ready{.tcp = 7421, .log = {}, .command = {}, .timeout_ns = 120 * kSecond};
    rig.prepare(
        fmt::format("[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n2\"\naction = \"{}\"\n"
                    "until = [ {{ log = \"heal now\", node = \"n1\" }} ]\n",
                    action));
    const auto start = [&](std::size_t from, const std::string& limit_ms) {
      return start_ping(rig, from, {"tcp", "127.0.0.1", from == 0 ? "7421" : "7420", limit_ms});
    };
    CHECK(end_ping(start(0, "30000")) == kEcho);
    CHECK(end_ping(start(1, "30000")) == kEcho);
    rig.begin();
    REQUIRE(eventually([&] { return rig.injector->outcomes().at(0).fired; }));
    // From this moment on, no request may be answered in either direction. Many requests are made in parallel, because
    // a busy machine runs them at very different times.
    std::vector<pid_t> asking;
    for (std::size_t i = 0; i < 30; ++i) asking.push_back(start(i % 2, "500"));
    for (const pid_t one : asking) CHECK(end_ping(one) == (action == "drop" ? kSilence : kRefused));
    rig.touch("n1/heal");
    REQUIRE(eventually([&] { return rig.injector->finished(); }));
    CHECK(end_ping(start(0, "30000")) == kEcho);
    CHECK(end_ping(start(1, "30000")) == kEcho);
    CHECK(rig.finish().at(0).injected > 0);
  }
}
