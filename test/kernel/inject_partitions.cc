// Partitions in network namespaces and on one host: who is cut, who is not, how it heals.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <cstdlib>

#include "inject_rig.h"

using namespace rose;
using namespace rose::test;

namespace {

constexpr std::int64_t kMs = 1'000'000;
const std::string kPinger = std::string(ROSE_PROGRAMS_DIR) + "/inject_pinger";

// Runs the pinger from a node's place in the world: its namespace and its cgroup.
int ping_from(Rig& rig, std::size_t node, const std::string& how, const std::string& ip, int port, int limit_ms) {
  const auto& info = rig.deployment->nodes()[node];
  const std::string cgroup = (info.cgroup / "cgroup.procs").string();
  const std::string port_text = std::to_string(port), limit = std::to_string(limit_ms);
  const int netns = rig.deployment->node_netns_fd(node);
  const int procs = ::open(cgroup.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(procs >= 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::write(procs, "0", 1) != 1) ::_exit(90);
    if (netns >= 0 && ::setns(netns, CLONE_NEWNET) != 0) ::_exit(91);
    ::execl(kPinger.c_str(), "inject_pinger", how.c_str(), ip.c_str(), port_text.c_str(), limit.c_str(), nullptr);
    ::_exit(92);
  }
  ::close(procs);
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) <= 1);
  return WEXITSTATUS(status);
}

struct Trio : Rig {
  explicit Trio(config::Network network = config::Network::netns, int base = 7200) : Rig(network), base_(base) {
    for (int i = 0; i < 3; ++i) {
      add({"server", std::to_string(port(i)), "server", std::to_string(port(i) + 50), "udp", std::to_string(port(i)), "print",
           "up", "sleep", "100000"});
      config.nodes.back().ready = config::Ready{.tcp = {}, .log = "up", .command = {}, .timeout_ns = 10 * config::kSecond};
    }
  }
  // In a host deployment all share one address and differ by port.
  [[nodiscard]] int port(int node) const { return config.deployment.network == config::Network::host ? base_ + node : base_; }
  [[nodiscard]] std::string ip(int node) const {
    return config.deployment.network == config::Network::host ? "127.0.0.1" : fmt::format("10.251.9.{}", node + 1);
  }
  bool reaches(int from, int to, const std::string& how = "tcp", int offset = 0) {
    return ping_from(*this, static_cast<std::size_t>(from), how, ip(to), port(to) + offset, 250) == 0;
  }
  bool client_reaches(int to) {
    auto command = deployment->spawn({kPinger, "tcp", ip(to), std::to_string(port(to)), "500"}, "client", 5 * config::kSecond);
    REQUIRE(command);
    return (*command)->wait().ok();
  }
  void wait_fired(std::size_t fault = 0) {
    REQUIRE(eventually([&] { return injector->outcomes().at(fault).fired; }));
  }

 private:
  int base_;
};

void both_ways(Trio& rig) {
  rig.start(R"(
[[fault]]
id = "cut"
kind = "partition"
node = "n1"
peers = ["n2"]
duration = "2500ms"
)");
  rig.wait_fired();
  CHECK_FALSE(rig.reaches(0, 1));
  CHECK_FALSE(rig.reaches(1, 0));
  CHECK_FALSE(rig.reaches(0, 1, "udp"));
  // Neither kernel notices: a datagram is sent without an error.
  CHECK(rig.reaches(0, 1, "send"));
  CHECK(rig.reaches(0, 2));
  CHECK(rig.reaches(1, 2));
  CHECK(rig.reaches(2, 0));
  CHECK(rig.client_reaches(0));
  CHECK(rig.client_reaches(1));
  REQUIRE(eventually([&] { return rig.injector->finished(); }));
  CHECK(rig.reaches(0, 1));
  CHECK(rig.reaches(1, 0));
  const auto outcome = rig.finish().at(0);
  CHECK(outcome.injected > 0);
  CHECK(outcome.ended_ns - outcome.fired_ns == 2500 * kMs);
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
  // Datagrams go one way only, so no echo comes back either way; which half is cut shows in who is asked.
  CHECK_FALSE(rig.reaches(0, 1, "udp"));
  CHECK(rig.reaches(0, 1));
  CHECK_FALSE(rig.reaches(2, 0));
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

TEST_CASE("netns: a partition cuts both ways, heals by itself at its time, and leaves others and clients alone") {
  Trio rig;
  both_ways(rig);
}

TEST_CASE("host: a partition cuts nodes that share an address") {
  Trio rig(config::Network::host, 7310);
  both_ways(rig);
}

TEST_CASE("netns: the clsact fallback cuts as TCX links do") {
  ::setenv("ROSE_MASK", "tcx", 1);
  Trio rig;
  both_ways(rig);
  ::unsetenv("ROSE_MASK");
}

TEST_CASE("netns: one way, by protocol and by port") {
  Trio rig;
  SECTION("out") { one_way(rig, "out"); }
  SECTION("in") { one_way(rig, "in"); }
}

TEST_CASE("host: one way, by protocol and by port") {
  Trio rig(config::Network::host, 7320);
  SECTION("out") { one_way(rig, "out"); }
  SECTION("in") { one_way(rig, "in"); }
}

TEST_CASE("which way is cut") {
  for (const auto network : {config::Network::netns, config::Network::host}) {
    for (const std::string direction : {"out", "in"}) {
      Trio rig(network, 7330);
      rig.start(fmt::format(
          "[[fault]]\nid = \"cut\"\nkind = \"partition\"\nnode = \"n1\"\npeers = [\"n2\"]\ndirection = \"{}\"\n", direction));
      rig.wait_fired();
      const auto dropped = [&] { return rig.injector->outcomes().at(0).injected; };
      REQUIRE(dropped() == 0);
      // "out": the request is dropped, once. "in": the request arrives and its echo is dropped.
      CHECK_FALSE(rig.reaches(0, 1, "udp"));
      CHECK(dropped() == 1);
      // From n2: "out" drops n1's echo, "in" the request.
      CHECK_FALSE(rig.reaches(1, 0, "udp"));
      CHECK(dropped() == 2);
    }
  }
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
  // 100 tosses: outside of this once in 10^9 runs.
  CHECK(outcome.injected > 20);
  CHECK(outcome.injected < 80);
}

TEST_CASE("a partition begins at a call, ends at its `until`, and others come after it") {
  Trio rig;
  rig.config.nodes[2].command = {kVictim, "server", "7200", "print", "up", "gate", "go", "create", "begin", "gate", "heal",
                                 "print", "heal now", "sleep", "100000"};
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
  CHECK_FALSE(rig.reaches(0, 1));
  CHECK_FALSE(rig.reaches(0, 2));
  CHECK_FALSE(rig.reaches(1, 2));
  rig.touch("n3/heal");
  REQUIRE(eventually([&] { return rig.reaches(0, 1); }));
  CHECK_FALSE(rig.reaches(1, 2));
  const auto outcomes = rig.finish();
  CHECK(outcomes.at(0).ended_ns > outcomes.at(0).fired_ns);
  const auto gap = outcomes.at(1).fired_ns - outcomes.at(0).fired_ns;
  CHECK(gap >= 100 * kMs);
  CHECK(gap < 150 * kMs);
}
