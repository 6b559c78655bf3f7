// Partitions that caused no silence in the trace. They show in calls to the other nodes, which fail as unreachable.
#include <catch2/catch.hpp>

#include <cerrno>

#include "diagnose_play.h"

using namespace rose;
using namespace rose::diagnose;
using namespace rose::diagnose::test;
using schedule::Direction;
using schedule::FaultKind;

namespace {

std::vector<const Candidate*> cuts(const Plan& plan) {
  std::vector<const Candidate*> found;
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::partition) found.push_back(&c);
  return found;
}

// The node with this number cannot reach `peers` in this period: to each of them, ten calls per second fail.
void unreachable(Dump& dump, double from, double to, int node, const std::vector<int>& peers, int err = ENETUNREACH,
                 const char* call = "sendto") {
  const int times = static_cast<int>((to - from) * 10 + 0.5);
  for (int i = 0; i <= times; ++i)
    for (const int peer : peers)
      dump.scf(from + 0.1 * i, fmt::format("n{}", node), call, err, {}, fmt::format("10.77.0.{}:7000", peer));
}

}  // namespace

TEST_CASE("unreachable: failures of one node's calls to all others are a partition that ranks before them") {
  const auto config = deployment();
  Dump dump;
  dump.scf(0.1, "n2", "openat", ENOENT, "/data/n2/index");
  unreachable(dump, 0.3, 2.8, 1, {2, 3});
  dump.ends(20);
  const Plan plan = plan_of(config, dump);
  REQUIRE(cuts(plan).size() == 1);
  const Candidate& cut = *cuts(plan)[0];
  CHECK(cut.rank == 1);
  CHECK(cut.node == "n1");
  CHECK(cut.fault.peers.empty());
  CHECK(cut.fault.direction == Direction::both);
  CHECK(cut.fault.duration_ns >= 2400 * kMillisecond);
  CHECK(cut.fault.duration_ns <= 2800 * kMillisecond);
  CHECK(cut.why.find("52 calls between n1 and n2, n3 failed as unreachable") != std::string::npos);
  CHECK(plan.schedules.at(0).faults.at(0).kind == FaultKind::partition);
  CHECK(plan.schedules.at(0).faults.at(0).when.at(0).elapsed_ns == 300 * kMillisecond);
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::syscall && c.error == "ENETUNREACH") CHECK(c.symptom);
  CHECK(accounted(plan) == plan.failures);
}

TEST_CASE("unreachable: the node that most pairs have in common is the partitioned one") {
  const auto config = deployment(4);
  Dump dump;
  for (const int node : {1, 2, 4}) unreachable(dump, 5 + 0.3 * node, 8, node, {3}, EHOSTUNREACH, "connect");
  dump.ends(20);
  const Plan plan = plan_of(config, dump);
  REQUIRE(cuts(plan).size() == 1);
  CHECK(cuts(plan)[0]->node == "n3");
  CHECK(cuts(plan)[0]->fault.peers.empty());
}

TEST_CASE("unreachable: one pair is a partition if both report it, one has no route, or there is no other node") {
  const auto plan_with = [](int nodes, const std::vector<std::pair<int, int>>& pairs, int err, const char* call) {
    const auto config = deployment(nodes);
    Dump dump;
    for (const auto& [node, peer] : pairs) unreachable(dump, 2, 4, node, {peer}, err, call);
    dump.ends(20);
    return cuts(plan_of(config, dump)).size();
  };
  CHECK(plan_with(3, {{1, 2}, {2, 1}}, EHOSTUNREACH, "connect") == 1);
  CHECK(plan_with(3, {{1, 2}}, EHOSTUNREACH, "connect") == 0);
  CHECK(plan_with(3, {{1, 2}}, ENETUNREACH, "connect") == 1);  // the network of n1 itself is down
  CHECK(plan_with(2, {{1, 2}}, EHOSTUNREACH, "connect") == 1);
  CHECK(plan_with(2, {{1, 2}}, ETIMEDOUT, "connect") == 0);
  CHECK(plan_with(2, {{1, 2}, {2, 1}}, ETIMEDOUT, "connect") == 1);
  // this error is caused by a timeout of the program itself
  CHECK(plan_with(3, {{1, 2}, {1, 3}}, ETIMEDOUT, "recvfrom") == 0);
}

TEST_CASE("unreachable: connects in progress that the other node never accepts are a partition") {
  // `node` begins connections to `peer`; those of [from, to] are not accepted.
  const auto connects = [](Dump& dump, double from, double to, int node, int peer) {
    for (int i = 0; i < 40; ++i) {
      const double t = 0.3 * i + 0.05 * node;
      trace::Event& begun =
          dump.scf(t, fmt::format("n{}", node), "connect", 0, {}, fmt::format("10.77.0.{}:7000", peer));
      begun.type = trace::EventType::sys;
      begun.result = -EINPROGRESS;
      if (t >= from && t <= to) continue;
      trace::Event& accepted = dump.scf(t + 0.001, fmt::format("n{}", peer), "accept4", 0, {},
                                        fmt::format("10.77.0.{}:{}", node, 40000 + i));
      accepted.type = trace::EventType::sys;
      accepted.result = 5;
    }
    dump.ends(13);
  };
  const auto config = deployment();
  Dump dump;
  connects(dump, 4, 6, 1, 2);
  connects(dump, 4, 6, 2, 1);
  const Plan plan = plan_of(config, dump);
  REQUIRE(cuts(plan).size() == 1);
  const Candidate& cut = *cuts(plan)[0];
  CHECK(cut.fault.node == "n1");
  CHECK(cut.fault.peers == std::vector<std::string>{"n2"});
  CHECK(cut.first_ts >= at(4));
  CHECK(cut.first_ts <= at(4.4));
  CHECK(cut.fault.duration_ns >= 1500 * kMillisecond);
  CHECK(cut.fault.duration_ns <= 2500 * kMillisecond);
  CHECK(cut.why.find("not answered") != std::string::npos);

  // The other node had ended.
  Dump ended;
  connects(ended, 4, 6, 1, 2);
  connects(ended, 4, 6, 3, 2);
  ended.crashed(4, "n2");
  ended.started(6, "n2");
  for (const Candidate* c : cuts(plan_of(config, ended))) CHECK(c->symptom);
  // Only one side connects.
  Dump one_side;
  connects(one_side, 4, 6, 1, 2);
  REQUIRE(cuts(plan_of(config, one_side)).size() == 1);
  // The first attempts are lost, but the service listens, and others reach it.
  Dump first;
  trace::Event& listens = first.scf(-1, "n2", "listen", 0, {}, "10.77.0.2:7000");
  listens.type = trace::EventType::sys;
  trace::Event& other = first.scf(-0.5, "n2", "accept4", 0, {}, "10.77.0.3:41000");
  other.type = trace::EventType::sys;
  other.result = 6;
  connects(first, -1, 2, 1, 2);
  CHECK(cuts(plan_of(config, first)).size() == 1);
  // The tracer lost events, perhaps the accepts.
  Dump lossy;
  connects(lossy, 4, 6, 1, 2);
  lossy.meta().lost = 3;
  CHECK(cuts(plan_of(config, lossy)).empty());
  // The dump of n2 ended before the attempts; n1 accepts n2 later.
  Dump ended_before;
  connects(ended_before, 4, 20, 1, 2);
  trace::Event& later = ended_before.scf(12, "n1", "accept4", 0, {}, "10.77.0.2:42000");
  later.type = trace::EventType::sys;
  later.result = 7;
  CHECK(cuts(plan_of(config, ended_before)).empty());
  // The service accepts nobody any more: its thread for connections may have ended.
  Dump for_good;
  connects(for_good, 4, 20, 1, 2);
  CHECK(cuts(plan_of(config, for_good)).empty());
  // The service was never seen to accept: perhaps its accepts are not recorded.
  Dump unseen;
  connects(unseen, -1, 20, 1, 2);
  connects(unseen, -1, 20, 2, 1);
  CHECK(cuts(plan_of(config, unseen)).empty());
}

TEST_CASE("unreachable: reset connections give only an uncertain partition and explain nothing") {
  const auto config = deployment();
  Dump dump;
  unreachable(dump, 2, 4, 1, {2, 3}, ECONNRESET, "recvfrom");
  dump.ends(20);
  const Plan plan = plan_of(config, dump);
  REQUIRE(cuts(plan).size() == 1);
  CHECK(cuts(plan)[0]->plainness < 0.3);
  for (const Candidate& c : plan.candidates)
    if (c.kind == FaultKind::syscall) CHECK_FALSE(c.symptom);

  Dump few;  // failures as few as when a single client disconnects
  few.scf(2, "n1", "recvfrom", ECONNRESET, {}, "10.77.0.2:7000");
  few.scf(2, "n1", "recvfrom", ECONNRESET, {}, "10.77.0.3:7000");
  CHECK(cuts(plan_of(config, few)).empty());
}

TEST_CASE("unreachable: calls that fail with EPERM are an outbound partition") {
  const auto config = deployment();
  Dump dump;
  unreachable(dump, 2, 6, 2, {1, 3}, EPERM);
  dump.scf(1, "n1", "openat", ENOENT, "/x/y");  // shows that all nodes were traced
  dump.scf(1, "n3", "openat", ENOENT, "/x/y");
  dump.ends(20);
  const Plan plan = plan_of(config, dump);
  REQUIRE(cuts(plan).size() == 1);
  CHECK(cuts(plan)[0]->node == "n2");
  CHECK(cuts(plan)[0]->fault.direction == Direction::out);
  REQUIRE_FALSE(cuts(plan)[0]->alternatives.empty());
  CHECK(cuts(plan)[0]->alternatives[0].direction == Direction::both);
}

TEST_CASE("unreachable: failures that a crash, a planned stop or the profile explains are no partition") {
  const auto config = deployment();
  Dump killed;
  killed.crashed(1.9, "n3");
  unreachable(killed, 2, 4, 1, {3}, EHOSTUNREACH, "connect");
  unreachable(killed, 2, 4, 2, {3}, EHOSTUNREACH, "connect");
  killed.ends(20);
  CHECK(cuts(plan_of(config, killed)).empty());

  Dump dump;
  unreachable(dump, 2, 4, 1, {2, 3});
  CHECK(cuts(plan_of(config, dump)).size() == 1);
  CHECK(cuts(plan_of(config, dump, profile_of(dump))).empty());

  Dump reached;  // in this dump, n1 reached the other nodes all the time
  for (const int peer : {2, 3}) {
    const std::string address = fmt::format("10.77.0.{}:7000", peer);
    reached.scf(1 + 6 * peer, "n1", "connect", ENETUNREACH, {}, address);
    reached.event(2 + 6 * peer, trace::EventType::sys, "n1").peer = reached.intern(address);
  }
  CHECK(cuts(plan_of(config, reached)).empty());
}

TEST_CASE("unreachable: failed calls widen the partition that silences show instead of adding one") {
  const auto config = deployment(4);
  Dump dump;
  dump.cut(5, 17, 1, {2});
  unreachable(dump, 5.2, 9, 1, {2, 3, 4});
  dump.ends(40);
  const Plan plan = plan_of(config, dump);
  REQUIRE(cuts(plan).size() == 1);
  const Candidate& cut = *cuts(plan)[0];
  CHECK(cut.node == "n1");
  CHECK(cut.fault.peers.empty());
  CHECK(cut.fault.duration_ns >= 12 * kSecond);
  CHECK(cut.count == 2);
  CHECK(accounted(plan) == plan.failures);
}

TEST_CASE("unreachable: two partitions of a node are separate if it was reached in between") {
  const auto config = deployment();
  Dump dump;
  unreachable(dump, 2, 4, 1, {2, 3});
  for (const int peer : {2, 3})
    dump.sys(5, "n1", "connect", "").peer = dump.intern(fmt::format("10.77.0.{}:7000", peer));
  unreachable(dump, 8, 12, 1, {2, 3});
  dump.ends(20);
  const Plan plan = plan_of(config, dump);
  REQUIRE(cuts(plan).size() == 2);
  CHECK(plan.schedules.at(0).faults.size() == 2);
}

TEST_CASE("unreachable: connecting a datagram socket is no sign of reachability; an open partition lasts") {
  const auto config = deployment();
  for (const bool datagrams : {false, true}) {
    CAPTURE(datagrams);
    Dump dump;
    for (int i = 0; i < 8; ++i)
      for (const int peer : {2, 3}) {
        const std::string to = fmt::format("10.77.0.{}:7000", peer);
        trace::Event& named = dump.sys(4 + 2 * i, "n1", "connect", "");
        named.peer = dump.intern(to);
        named.fd = 33;
        dump.scf(4.001 + 2 * i, "n1", "sendmmsg", EPERM, {}, to).fd = datagrams ? 33 : 34;
      }
    // such a connect may also be one of a datagram socket, so it does not show that n1 answered
    dump.sys(9, "n2", "connect", "").peer = dump.intern("10.77.0.1:7000");
    dump.ends(19);
    const Plan plan = plan_of(config, dump);
    CHECK((cuts(plan).size() == 1) == datagrams);
    if (!datagrams) continue;
    const Candidate& cut = *cuts(plan)[0];
    CHECK(cut.node == "n1");
    CHECK(cut.why.find("16 calls") != std::string::npos);
    CHECK(cut.why.find("still so when the dump was written") != std::string::npos);
    REQUIRE(cut.other_length);
    CHECK(std::max(cut.fault.duration_ns, cut.other_length->duration_ns) >= 15 * kSecond);
  }
}

TEST_CASE("unreachable: a link that flaps all day weighs less than one that was down once") {
  const auto config = deployment();
  const auto weight = [&](int flaps) {
    Dump dump;
    for (int i = 0; i < flaps; ++i) unreachable(dump, -3600.0 * (flaps - i), -3600.0 * (flaps - i) + 2, 1, {2, 3});
    dump.crashed(10, "n2");
    dump.ends(20);
    const Plan plan = plan_of(config, dump);
    double most = 0;
    for (const Candidate* c : cuts(plan)) most = std::max(most, c->weight);
    return most / std::find_if(plan.candidates.begin(), plan.candidates.end(), [](const Candidate& c) {
                    return c.kind == FaultKind::crash;
                  })->weight;
  };
  CHECK(weight(8) < 0.4 * weight(1));
}

TEST_CASE("unreachable: the search finds such a partition with its first schedule") {
  const auto config = deployment();
  Dump dump;
  unreachable(dump, 0.4, 2.9, 1, {2, 3});
  for (int i = 0; i < 20; ++i)
    dump.scf(0.2 + 0.1 * i, "n2", "openat", ENOENT, fmt::format("/data/n2/{}", static_cast<char>('a' + i)));
  dump.ends(20);
  Inputs inputs = inputs_of(config, {dump});
  Cluster cluster([](const schedule::Schedule& s, int) {
    return test::Answer{hit_if(fault_of(s, FaultKind::partition, "n1") != nullptr), {}, {}, ""};
  });
  const Result<Diagnosis> d = diagnose::diagnose(inputs, cluster, {});
  REQUIRE(d);
  CHECK(d->target_reached);
  CHECK(d->schedules == 1);
}
