// The offsets between clocks are estimated from handshakes. The true offset must be within the error that is stated.
#include "trace/clock.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "trace/merge.h"

using namespace rose::trace;

namespace {

constexpr std::int64_t kStart = 1'763'755'200'000'000'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;

// Two hosts, and the true time. The clock of the client is ahead by `ahead_ns` at kStart, and drifts.
struct World {
  std::int64_t ahead_ns = 0;
  double drift = 0;
  std::mt19937_64 rng{7};
  Trace server, client;
  std::uint32_t isn = 1000;

  World(std::int64_t ahead, double drift_per_second = 0) : ahead_ns(ahead), drift(drift_per_second) {
    server.meta.host = "s";
    server.meta.boot_id = "boot-s";
    client.meta.host = "c";
    client.meta.boot_id = "boot-c";
  }
  [[nodiscard]] std::int64_t of_client(std::int64_t t) const {
    return t + ahead_ns + static_cast<std::int64_t>(drift * static_cast<double>(t - kStart));
  }
  std::int64_t below(std::int64_t most) { return static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(most)); }
  // Adds a handshake at the time `t`, whose packets take between 50 us and one millisecond.
  void connect(std::int64_t t, bool wrong = false) {
    ++isn;
    const std::int64_t syn = t + 50'000 + below(kMillisecond), synack = syn + 50'000 + below(kMillisecond),
                       ack = synack + 50'000 + below(kMillisecond);
    server.meta.handshakes.push_back(to_text({"10.0.0.1:40000", "10.0.0.2:7000", isn, syn, ack, 0}));
    client.meta.handshakes.push_back(
        to_text({"10.0.0.1:40000", "10.0.0.2:7000", isn, 0, 0, of_client(synack) + (wrong ? 3 * kSecond : 0)}));
  }
  static void event(Trace& trace, std::int64_t ts) {
    Event e;
    e.ts_ns = ts;
    e.type = EventType::scf;
    e.syscall = 0;
    e.err = 5;
    e.node = trace.strings.intern(trace.meta.host);
    trace.events.push_back(e);
  }
};

// The clock offset that the merge estimated for the host of the second dump, and the largest difference between the
// times of its events and their true times.
struct Outcome {
  MergedClock clock;
  std::int64_t worst_ns = 0;
  Trace merged;
};

Outcome merge_events(World& world, std::int64_t seconds) {
  for (std::int64_t t = 0; t <= seconds; t += std::max<std::int64_t>(1, seconds / 10)) {
    World::event(world.server, kStart + t * kSecond);
    World::event(world.client, world.of_client(kStart + t * kSecond));
  }
  Outcome out;
  std::vector<MergedClock> clocks;
  auto merged = merge({world.server, world.client}, {}, &clocks);
  REQUIRE(merged);
  REQUIRE(clocks.size() == 2);
  out.clock = clocks[1];
  out.merged = std::move(*merged);
  std::vector<std::int64_t> server, client;
  for (const auto& e : out.merged.events) (out.merged.str(e.node) == "s" ? server : client).push_back(e.ts_ns);
  REQUIRE(server.size() == client.size());
  for (std::size_t i = 0; i < server.size(); ++i)
    out.worst_ns = std::max(out.worst_ns, std::abs(server[i] - client[i]));
  return out;
}

}  // namespace

TEST_CASE("a handshake's text is read back, other text is refused", "[clock]") {
  const Handshake h{"[fd00::1]:40000", "10.0.0.2:7000", 4294967295U, 1, 2, 3};
  const std::string text = to_text(h);
  const auto back = to_handshake(text);
  REQUIRE(back);
  CHECK(back->client == h.client);
  CHECK(back->isn == h.isn);
  CHECK((back->syn_ns == 1 && back->ack_ns == 2 && back->synack_ns == 3));
  for (const char* bad :
       {"", "a b 1 2 3", "a b 1 2 3 4 5", "a b x 2 3 4", "a b -1 2 3 4", "a b 4294967296 2 3 4", "a  1 2 3 4",
        "a b 1 2 3 -4", "a b 1 2 3 9223372036854775807", "a b 1 2 3 99999999999999999999"}) {
    INFO(bad);
    CHECK(!to_handshake(bad));
  }
}

TEST_CASE("an offset is recovered within the stated error, also with drift and outliers", "[clock]") {
  struct Case {
    std::int64_t ahead;
    double drift;
    int handshakes, wrong;
    std::int64_t seconds, error_most;
  };
  for (const auto& c :
       {Case{12'345'678, 0, 20, 0, 60, 4 * kMillisecond}, Case{-3600 * kSecond, 0, 20, 0, 60, 4 * kMillisecond},
        Case{5 * kMillisecond, 40e-6, 40, 0, 3600, 4 * kMillisecond},
        Case{5 * kMillisecond, -40e-6, 40, 6, 3600, 4 * kMillisecond},
        Case{250 * kMillisecond, 0, 1, 0, 10, 3 * kMillisecond}, Case{0, 0, 12, 3, 10, 3 * kMillisecond}}) {
    INFO("ahead " << c.ahead << " drift " << c.drift << " handshakes " << c.handshakes << " wrong " << c.wrong);
    World world(c.ahead, c.drift);
    for (int i = 0; i < c.handshakes; ++i)
      world.connect(kStart + c.seconds * kSecond * i / c.handshakes, i % 5 == 2 && i / 5 < c.wrong);
    const auto out = merge_events(world, c.seconds);
    INFO(out.clock.text);
    REQUIRE(out.clock.known);
    CHECK(out.worst_ns <= out.clock.error_ns + 1000);
    CHECK(out.clock.error_ns <= c.error_most);
    CHECK(out.clock.handshakes >= static_cast<std::size_t>(c.handshakes - c.wrong));
    REQUIRE(out.merged.meta.clock.size() == 1);
    CHECK(out.merged.meta.clock[0] == out.clock.text);
  }
}

TEST_CASE("without a connection seen on both sides the times are kept, which is reported", "[clock]") {
  const auto unmoved = [](World& world) {
    const auto out = merge_events(world, 10);
    CHECK(!out.clock.known);
    CHECK(out.worst_ns == world.ahead_ns);
    CHECK(out.clock.text.find("not estimated") != std::string::npos);
  };
  SECTION("no connection") {
    World world(7 * kMillisecond);
    unmoved(world);
  }
  SECTION("ports differ because of address translation") {
    World world(7 * kMillisecond);
    for (int i = 0; i < 5; ++i) world.connect(kStart + i * kSecond);
    for (auto& line : world.client.meta.handshakes) line.replace(0, 14, "192.168.1.9:555");
    unmoved(world);
  }
  SECTION("the ports were reused by another connection") {
    World world(7 * kMillisecond);
    for (int i = 0; i < 5; ++i) world.connect(kStart + i * kSecond);
    for (auto& line : world.client.meta.handshakes) line.replace(line.find(" 10") + 15, 4, "9999");
    unmoved(world);
  }
  SECTION("only one bound exists") {
    World world(7 * kMillisecond);
    for (std::uint32_t i = 0; i < 5; ++i) {
      world.server.meta.handshakes.push_back(to_text({"a:1", "b:2", i, kStart + i, 0, 0}));
      world.client.meta.handshakes.push_back(to_text({"a:1", "b:2", i, 0, 0, kStart + i + 9}));
    }
    unmoved(world);
  }
  SECTION("all handshakes contradict each other") {
    World world(7 * kMillisecond);
    for (std::uint32_t i = 0; i < 8; ++i) {
      world.server.meta.handshakes.push_back(to_text({"a:1", "b:2", i, kStart, kStart + 1000, 0}));
      world.client.meta.handshakes.push_back(to_text({"a:1", "b:2", i, 0, 0, kStart + i * kSecond}));
    }
    unmoved(world);
  }
}

TEST_CASE("one bound from each side gives an estimate, also through other hosts", "[clock]") {
  // The hosts a and b exchange data, and b and c. The clock of b is 2 s ahead of that of a, and c's is 3 s ahead of
  // b's.
  const std::string ab1 = to_text({"a:1", "b:2", 1, 0, 0, kStart + kMillisecond});  // as seen at a
  std::vector<HostHandshakes> hosts(3);
  const auto line = [](const char* client, const char* server, std::uint32_t isn, std::int64_t syn, std::int64_t synack,
                       std::int64_t ack) { return Handshake{client, server, isn, syn, ack, synack}; };
  for (auto& host : hosts) host.begin_ns = kStart, host.end_ns = kStart + kSecond;
  // There are connections in both directions. Of each, the server saw only the SYN.
  hosts[0].handshakes = {line("a:1", "b:2", 1, 0, kStart + 2 * kMillisecond, 0),
                         line("b:1", "a:2", 2, kStart + 10 * kMillisecond, 0, 0)};
  hosts[1].handshakes = {line("a:1", "b:2", 1, 2 * kSecond + kStart + kMillisecond, 0, 0),
                         line("b:1", "a:2", 2, 0, 2 * kSecond + kStart + 11 * kMillisecond, 0),
                         line("b:3", "c:2", 3, 0, 2 * kSecond + kStart + 21 * kMillisecond, 0)};
  hosts[2].handshakes = {
      line("b:3", "c:2", 3, 5 * kSecond + kStart + 20 * kMillisecond, 0, 5 * kSecond + kStart + 22 * kMillisecond)};
  const auto clocks = estimate_clocks(hosts);
  REQUIRE(clocks.size() == 3);
  REQUIRE((clocks[1].known && clocks[2].known));
  CHECK(std::abs(clocks[1].ahead_end - 2e9) <= clocks[1].error_ns);
  CHECK(std::abs(clocks[2].ahead_end - 5e9) <= clocks[2].error_ns);
  CHECK(clocks[2].steps == 2);
  CHECK(clocks[2].error_ns > clocks[1].error_ns);
  CHECK(clocks[2].error_ns < 5e6);
  CHECK(std::abs(clocks[2].to_first(5 * kSecond + kStart + 100 * kMillisecond) - (kStart + 100 * kMillisecond)) <=
        clocks[2].error_ns);
}

TEST_CASE("clock offsets can be given, left uncorrected, or shared", "[clock]") {
  World world(7 * kMillisecond);
  for (int i = 0; i < 5; ++i) world.connect(kStart + i * kSecond);
  World::event(world.server, kStart);
  World::event(world.client, kStart + kSecond);
  MergeOptions options;
  options.estimate_clocks = false;
  auto merged = merge({world.server, world.client}, options);
  REQUIRE(merged);
  CHECK(merged->events.back().ts_ns == kStart + kSecond);
  CHECK(merged->meta.clock.empty());
  options.ahead_ns = {{"c", 250 * kMillisecond}};
  std::vector<MergedClock> clocks;
  merged = merge({world.server, world.client}, options, &clocks);
  REQUIRE(merged);
  CHECK(merged->events.back().ts_ns == kStart + 750 * kMillisecond);
  CHECK(clocks[1].given);
  CHECK(merged->meta.clock == std::vector<std::string>{"c: clock 250.0 ms ahead of s, as given; corrected"});
  options.ahead_ns = {{"nobody", 1}};
  const auto refused = merge({world.server, world.client}, options);
  REQUIRE(!refused);
  CHECK(refused.error().hint == "they are from 's', 'c'");
  // Dumps of the same boot have the same clock.
  world.client.meta.boot_id = "boot-s";
  const auto same = merge({world.server, world.client});
  CHECK(same.events.back().ts_ns == kStart + kSecond);
  CHECK(same.meta.clock.empty());
}

TEST_CASE("a merged dump can be merged again", "[clock]") {
  World world(700 * kMillisecond);
  for (int i = 0; i < 5; ++i) world.connect(kStart + i * kSecond);
  auto out = merge_events(world, 5);
  // A later dump of the client's host contains handshakes whose other sides are in the merged dump.
  World::event(world.client, world.of_client(kStart + 20 * kSecond));
  std::vector<MergedClock> clocks;
  const auto again = merge({out.merged, world.client}, {}, &clocks);
  REQUIRE(again);
  REQUIRE(clocks.size() == 2);
  INFO(clocks[1].text);
  CHECK(clocks[1].known);
  CHECK(std::abs(again->events.back().ts_ns - (kStart + 20 * kSecond)) <= clocks[1].error_ns + 3 * kMillisecond);
}

TEST_CASE("the record of a clock step is read back") {
  for (const std::int64_t change :
       {std::int64_t{3'600'000'000'000}, std::int64_t{-2'500'000'000}, std::int64_t{20'000'000}}) {
    const std::string text = step_text("db-1.example.com", 1'763'755'200'123'456'789, change);
    const std::optional<ClockStep> step = to_step(text);
    REQUIRE(step);
    CHECK(step->host == "db-1.example.com");
    CHECK(step->at_ns == 1'763'755'200'123'456'789);
    CHECK(step->change_ns == change);
  }
  for (const char* other :
       {"", "n1: the clock was set 3 times more before", "n1: clock 2 ms ahead of n2, as given; corrected",
        "n1: the clock was set sideways by 1h at 2025-11-21 21:00:01.000000000 UTC; x",
        "n1: the clock was set back by much at 2025-11-21 21:00:01.000000000 UTC",
        "n1: the clock was set back by 1h at noon", "n1: the clock was set at  by 1h"})
    CHECK_FALSE(to_step(other));
}
