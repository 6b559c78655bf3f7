// Silences between two network namespaces that stand for hosts, the clocks of these hosts, many pairs, and unusual
// frames.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include "base/subprocess.h"
#include "bpf/tracer.h"
#include "observe_network.h"
#include "skel/tracer.skel.h"
#include "skip.h"
#include "trace/clock.h"
#include "trace/jsonl.h"
#include "trace/merge.h"

using namespace rose;
using namespace rose::observe;
using namespace rose::observe::test;
using trace::EventType;

namespace {

void ip(std::vector<std::string> words) {
  words.insert(words.begin(), "ip");
  const auto done = run_command(words);
  REQUIRE(done);
  INFO(done->err);
  REQUIRE(done->exit_code == 0);
}

// Two network namespaces with the addresses 10.213.7.1 and 10.213.7.2, connected by a veth pair. At the end, the
// calling thread returns to its own namespace.
class TwoHosts {
 public:
  TwoHosts() : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    holders_[0] = hold();
    holders_[1] = hold();
    enter(0);
    ip({"link", "add", "rose-v0", "type", "veth", "peer", "name", "rose-v0", "netns",
        std::to_string(holders_[1]->pid())});
    for (int i : {0, 1}) {
      enter(i);
      ip({"addr", "add", address(i) + "/24", "dev", "rose-v0"});
      ip({"link", "set", "lo", "up"});
      ip({"link", "set", "rose-v0", "up"});
    }
    leave();
  }
  ~TwoHosts() { (void)::setns(before_.get(), CLONE_NEWNET); }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  void enter(int host) const {
    const Fd ns(::open(("/proc/" + std::to_string(holders_[host]->pid()) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::setns(ns.get(), CLONE_NEWNET) == 0);
  }
  void leave() const { REQUIRE(::setns(before_.get(), CLONE_NEWNET) == 0); }
  void link(int host, bool up) const {
    enter(host);
    ip({"link", "set", "rose-v0", up ? "up" : "down"});
    leave();
  }
  static std::string address(int host) { return host == 0 ? "10.213.7.1" : "10.213.7.2"; }

 private:
  std::unique_ptr<Victim> hold() {
    REQUIRE(::unshare(CLONE_NEWNET) == 0);
    return std::make_unique<Victim>(nullptr, std::vector<std::string>{"wait"});
  }
  Fd before_;
  std::unique_ptr<Victim> holders_[2];
};

struct Talk {
  TwoHosts hosts;
  TestCgroup servers{"host0"}, clients{"host1"};
  std::unique_ptr<Victim> server, client;
  void begin_server() {
    hosts.enter(0);
    server = std::make_unique<Victim>(&servers, std::vector<std::string>{"answer", "7171"});
    hosts.leave();
    REQUIRE(server->number("ready") == 1);
  }
  std::unique_ptr<Victim> make_client(bool ends_hard = false) const {
    hosts.enter(1);
    std::vector<std::string> words{"talk", TwoHosts::address(0), "7171", "20", "100000", "0"};
    if (ends_hard) words.emplace_back("hard");
    auto victim = std::make_unique<Victim>(&clients, std::move(words));
    hosts.leave();
    REQUIRE(victim->number("connected") == 1);
    return victim;
  }
};

}  // namespace

TEST_CASE("a link that is down for six seconds is silent on both hosts, in both directions") {
  Talk talk;
  TracerOptions options;
  options.network_delay_ns = 2'000'000'000;
  const std::string way = GENERATE("sockets", "tcx", "xdp");
  INFO(way);
  talk.begin_server();
  std::unique_ptr<Tracer> tracer;
  if (way != "sockets") {
    if (way == "xdp") ::setenv("ROSE_MASK", "tcx", 1);
    talk.hosts.enter(0);
    options.interfaces = {"rose-v0"};
  }
  tracer = start({target("n0", talk.servers), target("n1", talk.clients)}, options);
  ::unsetenv("ROSE_MASK");
  if (way != "sockets") {
    // A tracer that is limited to one interface stands for the tracer of one host, so only packets that reach n0 are
    // recorded.
    Target node = target("n0", talk.servers);
    node.addresses = {TwoHosts::address(0)};
    tracer.reset();
    if (way == "xdp") ::setenv("ROSE_MASK", "tcx", 1);
    tracer = start({node}, options);
    ::unsetenv("ROSE_MASK");
    talk.hosts.leave();
  }
  talk.client = talk.make_client();
  std::this_thread::sleep_for(3s);
  CHECK(silences(snapshot(*tracer), 7171).empty());
  // no silence has been reported, so the last packet of every connection is less than two seconds old
  const std::int64_t before_ns = wall_ns();
  talk.hosts.link(0, false);
  const std::int64_t down_ns = wall_ns();
  std::this_thread::sleep_for(6s);
  const std::int64_t up_ns = wall_ns();
  talk.hosts.link(0, true);
  // UDP is received again at once, but TCP only after its next retransmission. The intervals between these grow.
  const std::size_t expected = way == "sockets" ? 4 : 2;
  std::vector<trace::Event> found;
  trace::Trace trace;
  const bool ended = eventually([&] {
    trace = snapshot(*tracer);
    found = silences(trace, 7171);
    return found.size() >= expected && std::none_of(found.begin(), found.end(), is_open);
  });
  std::erase_if(trace.events, [](const auto& e) { return e.type != EventType::nd; });
  INFO(describe(trace));
  REQUIRE(ended);
  CHECK(found.size() == expected);
  std::set<std::pair<std::string, trace::Protocol>> seen;
  for (const auto& event : found) {
    const std::string node(trace.str(event.node));
    seen.emplace(node, event.protocol);
    const int at = node == "n0" ? 0 : 1;
    CHECK(trace.str(event.dst) == TwoHosts::address(at));
    CHECK(trace.str(event.src) == TwoHosts::address(1 - at));
    CHECK((at == 0 ? event.dport : event.sport) == 7171);
    const std::int64_t begin_ns = event.ts_ns - std::int64_t{event.duration_ms} * 1'000'000;
    CHECK(begin_ns >= before_ns - options.network_delay_ns);
    CHECK(begin_ns <= down_ns + 1'000'000);
    CHECK(event.ts_ns >= up_ns);
    CHECK(event.packets >= 50);
  }
  CHECK(seen.size() == expected);
}

TEST_CASE("on a link that is down, unanswered requests are distinguished from idleness, with intervals") {
  Talk talk;
  talk.begin_server();
  talk.hosts.enter(0);
  Victim quiet_server(&talk.servers, {"answer", "7272"});
  talk.hosts.leave();
  REQUIRE(quiet_server.number("ready") == 1);
  TracerOptions options;
  options.network_delay_ns = 2'000'000'000;
  const auto tracer = start({target("n0", talk.servers), target("n1", talk.clients)}, options);
  talk.client = talk.make_client();
  talk.hosts.enter(1);
  // Sends requests for a while, and is then idle.
  Victim quiet(&talk.clients, {"talk", TwoHosts::address(0), "7272", "20", "100", "600000"});
  talk.hosts.leave();
  REQUIRE(quiet.number("connected") == 1);
  REQUIRE(quiet.number("late") >= 0);
  talk.hosts.link(0, false);
  const std::int64_t down_ns = wall_ns();
  std::this_thread::sleep_for(6s);
  const std::int64_t up_ns = wall_ns();
  const auto tcp = [&](int port, const char* node) {
    std::vector<trace::Event> found;
    const auto trace = snapshot(*tracer);
    for (const auto& event : silences(trace, port))
      if (event.protocol == trace::Protocol::tcp && trace.str(event.node) == node) found.push_back(event);
    return found;
  };
  const auto busy = tcp(7171, "n1"), idle = tcp(7272, "n1");
  REQUIRE(busy.size() == 1);
  REQUIRE(idle.size() == 1);
  CHECK(is_open(busy[0]));
  CHECK((busy[0].flags & trace::kOutstanding) != 0);
  CHECK((idle[0].flags & trace::kIdle) != 0);
  CHECK((idle[0].flags & trace::kOutstanding) == 0);
  talk.hosts.link(0, true);
  std::vector<trace::Event> ended;
  REQUIRE(eventually([&] {
    ended = tcp(7171, "n1");
    return ended.size() == 1 && !is_open(ended[0]);
  }));
  constexpr std::int64_t kMs = 1'000'000, kClose = 20 * kMs;  // because `ip link` takes some time to have an effect
  const std::int64_t begin_ns = ended[0].ts_ns - ended[0].duration_ms * kMs;
  CHECK((ended[0].flags & trace::kOutstanding) != 0);
  REQUIRE(ended[0].begin_within_ms >= 0);
  REQUIRE(ended[0].end_within_ms >= 0);
  CHECK(begin_ns <= down_ns + kClose);
  CHECK(begin_ns + ended[0].begin_within_ms * kMs >= down_ns - 5 * kClose);
  CHECK(ended[0].begin_within_ms <= 1000);
  CHECK(ended[0].ts_ns >= up_ns);
}

TEST_CASE("a link that goes down right after a connect is recorded as silent") {
  Talk talk;
  talk.begin_server();
  const auto tracer = start({target("n1", talk.clients)}, quick());
  talk.client = talk.make_client();
  talk.hosts.link(0, false);
  std::vector<trace::Event> found;
  REQUIRE(eventually([&] {
    found = silences(snapshot(*tracer), 7171);
    std::erase_if(found, [](const auto& event) { return event.protocol != trace::Protocol::tcp; });
    return found.size() == 1 && (found[0].flags & trace::kOutstanding) != 0;
  }));
  CHECK(is_open(found[0]));
}

TEST_CASE("a route that drops a node's packets causes a silence, a connection that the peer resets does not") {
  Talk talk;
  talk.begin_server();
  for (const bool cut : {false, true}) {
    INFO("cut: " << cut);
    const auto tracer = start({target("n1", talk.clients)}, quick());
    const auto tcp = [&] {
      std::vector<trace::Event> found = silences(snapshot(*tracer), 7171);
      std::erase_if(
          found, [](const trace::Event& event) { return event.protocol != trace::Protocol::tcp || !is_open(event); });
      return found;
    };
    talk.client = talk.make_client(true);
    std::this_thread::sleep_for(4 * kDelay);
    if (cut) {
      for (const int host : {0, 1}) {  // on both hosts, because otherwise the other one's retransmissions would arrive
        talk.hosts.enter(host);
        ip({"route", "add", "blackhole", TwoHosts::address(1 - host) + "/32"});
        talk.hosts.leave();
      }
      std::this_thread::sleep_for(3 * kDelay);
    }
    talk.client->end_input();
    talk.client->wait();
    if (cut) {
      CHECK(eventually([&] { return tcp().size() == 1; }));
    } else {
      std::this_thread::sleep_for(3 * kDelay);
      CHECK(tcp().empty());
    }
  }
}

TEST_CASE("the clock offset between two hosts' dumps is recovered from handshakes") {
  Talk talk;
  talk.begin_server();
  auto at_server = start({target("n0", talk.servers)}), at_client = start({target("n1", talk.clients)});
  // The clients connect and disconnect. The tracer keeps a handshake in a slot that depends on its random initial
  // sequence number, and each further slot is half as likely. So many connections are needed to fill several slots.
  for (int i = 0; i < 64; ++i) (void)talk.make_client();
  trace::Trace server = snapshot(*at_server), client = snapshot(*at_client);
  INFO(describe(server) << describe(client));
  CHECK(server.meta.handshakes.size() >= 3);
  CHECK(client.meta.handshakes.size() >= 3);
  REQUIRE(!client.events.empty());
  // Pretend that the client's host is another machine, whose clock is half an hour ahead.
  constexpr std::int64_t kAhead = 1'800'012'345'678;
  client.meta.boot_id = "another";
  client.meta.host = "other";
  for (auto& event : client.events) event.ts_ns += kAhead;
  for (auto& line : client.meta.handshakes) {
    auto words = line.substr(line.rfind(' ', line.rfind(' ') - 1) + 1);
    const auto at = line.size() - words.size();
    const auto synack = std::strtoll(words.c_str(), nullptr, 10);
    CHECK(synack > 0);
    line = line.substr(0, at) + std::to_string(synack + kAhead) + " 0";
  }
  // Use the text form, in which dumps may be transferred.
  const auto travelled = [](const trace::Trace& trace) {
    std::string text;
    trace::write_jsonl(trace, [&](std::string_view more) { text += more; });
    auto back = trace::parse_jsonl(text, "dump");
    REQUIRE(back);
    return std::move(*back);
  };
  std::vector<trace::MergedClock> clocks;
  const auto merged = trace::merge({travelled(server), travelled(client)}, {}, &clocks);
  REQUIRE(merged);
  REQUIRE(clocks.size() == 2);
  INFO(clocks[1].text);
  REQUIRE(clocks[1].known);
  CHECK(std::abs(clocks[1].ahead_ns - kAhead) <= clocks[1].error_ns);
  // The result is at least as exact as the fastest handshake alone: the time between its SYN and its ACK, plus the
  // drift of the clocks in that time.
  std::int64_t quickest = INT64_MAX;
  for (const auto& line : server.meta.handshakes) {
    const auto handshake = trace::to_handshake(line);
    REQUIRE(handshake);
    if (handshake->ack_ns != 0) quickest = std::min(quickest, handshake->ack_ns - handshake->syn_ns);
  }
  const auto drift =
      static_cast<std::int64_t>(trace::kMostDrift * static_cast<double>(server.meta.end_ns - server.meta.begin_ns));
  CHECK(clocks[1].error_ns <= quickest + drift);
  CHECK(clocks[1].handshakes >= 3);
  WARN("clock offset off by " << (clocks[1].ahead_ns - kAhead) / 1000 << " us; said: " << clocks[1].text);
}

TEST_CASE("twenty thousand pairs are tracked in bounded memory, and rare ones evict none in use") {
  const OwnNetwork network;
  const TestCgroup cgroup("many");
  Victim server(&cgroup, {"serve"});
  const int udp4 = server.number("udp4");
  REQUIRE(udp4 > 0);
  // Send packets from 20,000 addresses of the loopback network, from one socket.
  constexpr int kPairs = 20'000;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(udp4));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Fd sender(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto send_from = [&](int number) {
    char byte = 'x';
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))] = {};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = IPPROTO_IP;
    head->cmsg_type = IP_PKTINFO;
    head->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
    in_pktinfo info{};
    info.ipi_spec_dst.s_addr = htonl(0x7f010000U + static_cast<std::uint32_t>(number));
    std::memcpy(CMSG_DATA(head), &info, sizeof info);
    REQUIRE(::sendmsg(sender.get(), &message, 0) == 1);
  };
  auto options = quick();
  SECTION("with enough memory all silences are recorded") {
    auto tracer = start({target("n1", cgroup)}, options);
    // A silence is reported only for pairs that have sent several packets, over at least half of the delay.
    const std::int64_t begin = monotonic_ns();
    for (int round = 0; round < 6 || monotonic_ns() - begin < options.network_delay_ns; ++round) {
      for (int i = 1; i <= kPairs; ++i) send_from(i);
    }
    // On a slow machine, a round takes long. Silences are then reported later, because they must be several times as
    // long as the usual interval.
    trace::Trace trace;
    CHECK(eventually([&] {
      trace = snapshot(*tracer);
      return silences(trace, udp4).size() >= kPairs * 99 / 100;
    }));
    CHECK(trace.meta.pairs_evicted == 0);
  }
  SECTION("with little memory rare pairs are evicted first, and evictions are counted") {
    options.memory = std::uint64_t{8} << 20;
    auto tracer = start({target("n1", cgroup)}, options);
    const auto send_from_frequent = [&] {
      for (int i = kPairs + 1; i <= kPairs + 50; ++i) send_from(i);
    };
    const std::int64_t begin = monotonic_ns();
    for (int i = 0; i < 10; ++i) send_from_frequent();
    for (int i = 1; i <= kPairs; ++i) {  // so each pair sends once or twice
      send_from(i);
      if (i % 2 == 0) send_from(i);
      if (i % 500 == 0) send_from_frequent();
    }
    // A silence is reported only for pairs that were active for at least half of the delay. On a fast machine, less
    // time than that may have passed so far.
    while (monotonic_ns() - begin < options.network_delay_ns) send_from_frequent();
    trace::Trace trace;
    CHECK(eventually([&] {
      trace = snapshot(*tracer);
      return silences(trace, udp4).size() >= 50;
    }));
    CHECK(silences(trace, udp4).size() == 50);
    CHECK(trace.meta.pairs_evicted == 0);
    for (int i = 1; i <= kPairs; ++i) {
      for (int n = 0; n < 6; ++n) send_from(i);
    }
    trace = snapshot(*tracer);
    CHECK(trace.meta.pairs_evicted > kPairs / 2);
    CHECK(trace.meta.pairs_evicted < kPairs + 50);
    CHECK(tracer->stats().memory <= options.memory);
  }
}

TEST_CASE("frames with VLAN tags and IPv6 extension headers are parsed") {
  rose_tracer* skeleton = rose_tracer__open_and_load();
  REQUIRE(skeleton != nullptr);
  const auto seen = [&](std::vector<std::uint8_t> frame, bpf_program* program) {
    frame.resize(std::max<std::size_t>(frame.size(), 100));
    LIBBPF_OPTS(bpf_test_run_opts, run);
    run.data_in = frame.data();
    run.data_size_in = static_cast<__u32>(frame.size());
    REQUIRE(bpf_prog_test_run_opts(bpf_program__fd(program), &run) == 0);
    rose_pair pair{}, found{};
    const int map = bpf_map__fd(skeleton->maps.rose_fresh);
    int count = 0;
    for (rose_pair* at = nullptr; bpf_map_get_next_key(map, at, &pair) == 0; at = nullptr) {
      found = pair;
      ++count;
      REQUIRE(bpf_map_delete_elem(map, &pair) == 0);
    }
    CHECK(count <= 1);
    return count == 1 ? std::optional<rose_pair>(found) : std::nullopt;
  };
  using Bytes = std::vector<std::uint8_t>;
  const auto join = [](std::initializer_list<Bytes> parts) {
    Bytes out;
    for (const auto& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
  };
  const Bytes macs(12, 2), udp = {0x13, 0x88, 0x1b, 0x58, 0, 8, 0, 0};  // from port 5000 to port 7000
  const Bytes vlan = {0x81, 0, 0, 5}, service = {0x88, 0xa8, 0, 9}, ip4 = {8, 0}, ip6 = {0x86, 0xdd};
  const auto v4 = [](std::uint8_t protocol, std::uint8_t words = 5, std::uint8_t fragment = 0) {
    Bytes out = {static_cast<std::uint8_t>(0x40 | words),
                 0,
                 0,
                 60,
                 0,
                 1,
                 0,
                 fragment,
                 64,
                 protocol,
                 0,
                 0,
                 10,
                 0,
                 0,
                 1,
                 10,
                 0,
                 0,
                 2};
    out.resize(words * 4U);
    return out;
  };
  const auto v6 = [](std::uint8_t next) {
    Bytes out(40, 0);
    out[0] = 0x60;
    out[6] = next;
    out[7] = 64;
    out[8] = out[24] = 0xfd;
    out[23] = 1;
    out[39] = 2;
    return out;
  };
  const Bytes hop = {43, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, routing = {60, 0, 0, 0, 0, 0, 0, 0},
              destination = {17, 0, 0, 0, 0, 0, 0, 0}, first_fragment = {17, 0, 0, 1, 0, 0, 0, 9},
              later_fragment = {17, 0, 0, 8, 0, 0, 0, 9};
  struct Case {
    const char* what;
    Bytes frame;
    bool understood;
  };
  const Case cases[] = {
      {"IPv4", join({macs, ip4, v4(17), udp}), true},
      {"IPv4 with options", join({macs, ip4, v4(17, 9), udp}), true},
      {"IPv4, a later fragment", join({macs, ip4, v4(17, 5, 3), udp}), false},
      {"IPv4, ICMP", join({macs, ip4, v4(1), udp}), false},
      {"VLAN", join({macs, vlan, ip4, v4(17), udp}), true},
      {"VLAN in VLAN", join({macs, service, vlan, ip4, v4(17), udp}), true},
      {"IPv6", join({macs, ip6, v6(17), udp}), true},
      {"IPv6 in VLAN", join({macs, vlan, ip6, v6(17), udp}), true},
      {"IPv6 extensions", join({macs, ip6, v6(0), hop, routing, destination, udp}), true},
      {"IPv6, first fragment", join({macs, ip6, v6(44), first_fragment, udp}), true},
      {"IPv6, a later fragment", join({macs, ip6, v6(44), later_fragment, udp}), false},
      {"IPv6, no next header", join({macs, ip6, v6(59), udp}), false},
      {"ARP", join({macs, {8, 6}, udp}), false},
  };
  for (bpf_program* program : {skeleton->progs.rose_tc, skeleton->progs.rose_xdp}) {
    for (const auto& c : cases) {
      INFO(bpf_program__name(program) << ": " << c.what);
      const auto pair = seen(c.frame, program);
      REQUIRE(pair.has_value() == c.understood);
      if (!pair) continue;
      CHECK(pair->protocol == 17);
      CHECK((pair->port == 5000 || pair->port == 7000));
      CHECK(pair->src[15] == 1);
      CHECK(pair->dst[15] == 2);
    }
  }
  rose_tracer__destroy(skeleton);
}

TEST_CASE("connections of one pair that begin and end on two processors at once leave none open") {
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  if (processors.size() < 2) ::rose::test::skip_case("needs two processors");
  constexpr std::uint32_t kPairs = 1500;
  rose_tracer* skeleton = rose_tracer__open();
  REQUIRE(skeleton != nullptr);
  skeleton->rodata->rose_network.ephemeral_low = 32768;
  skeleton->rodata->rose_network.ephemeral_high = 60999;
  skeleton->rodata->rose_network.delay_ns = 1'000'000'000;
  for (bpf_map* map :
       {skeleton->maps.rose_pairs, skeleton->maps.rose_fresh, skeleton->maps.rose_conns, skeleton->maps.rose_over})
    bpf_map__set_max_entries(map, 16 * kPairs);
  REQUIRE(rose_tracer__load(skeleton) == 0);
  const int program = bpf_program__fd(skeleton->progs.rose_tc);
  // Sends from 10.x.y.1, with another address for each pair, to port 7000 of 10.0.0.2.
  const auto send = [&](std::uint32_t pair, std::uint16_t port, std::uint8_t flags) {
    std::vector<std::uint8_t> frame(12, 2);
    const auto add = [&](std::initializer_list<int> bytes) {
      for (const int byte : bytes) frame.push_back(static_cast<std::uint8_t>(byte));
    };
    add({8,
         0,
         0x45,
         0,
         0,
         60,
         0,
         1,
         0,
         0,
         64,
         6,
         0,
         0,
         10,
         static_cast<int>(pair / 200) + 1,
         static_cast<int>(pair % 200),
         1,
         10,
         0,
         0,
         2});
    add({port >> 8, port & 255, 7000 >> 8, 7000 & 255, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 0, 0, 0, 0, 0, 0});
    frame.resize(100);
    LIBBPF_OPTS(bpf_test_run_opts, run);
    run.data_in = frame.data();
    run.data_size_in = static_cast<__u32>(frame.size());
    return bpf_prog_test_run_opts(program, &run) == 0;
  };
  // Two threads, each on its own processor, send packets of the same pair at the same time. So they also race at the
  // moment when the pair has had enough packets for the tracer to begin watching it.
  std::atomic<std::uint32_t> arrived{0};
  std::atomic<bool> sent{true};
  const auto one = [&](int number) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processors[static_cast<std::size_t>(number)], &only);
    (void)::sched_setaffinity(0, sizeof only, &only);
    constexpr std::uint8_t kFin = 0x11, kSyn = 0x02;
    for (std::uint32_t pair = 0; pair < kPairs; ++pair) {
      ++arrived;
      while (arrived < 2 * (pair + 1)) {
      }
      for (int i = 0; i < 4; ++i) {
        const auto port = static_cast<std::uint16_t>(40000 + 10 * number + i);
        if (!send(pair, port, kSyn) || !send(pair, port, kFin)) sent = false;
      }
    }
  };
  std::thread first(one, 0), second(one, 1);
  first.join();
  second.join();
  REQUIRE(sent);
  std::uint32_t pairs = 0, open = 0;
  const int map = bpf_map__fd(skeleton->maps.rose_pairs);
  rose_pair key{}, next{};
  for (int error = bpf_map_get_next_key(map, nullptr, &next); error == 0;
       error = bpf_map_get_next_key(map, &key, &next)) {
    key = next;
    rose_pair_state state{};
    if (bpf_map_lookup_elem(map, &key, &state) != 0) continue;
    ++pairs;
    if (state.open != 0) ++open;
  }
  CHECK(pairs == kPairs);
  CHECK(skeleton->bss->rose_network_counts.pairs == kPairs);
  CHECK(open == 0);
  rose_tracer__destroy(skeleton);
}

// Runs only on request: kernel_observe "[.cost]". Prints ratios without a limit, because the machine may be busy.
TEST_CASE("the cost of a packet is printed", "[.cost]") {
  const TestCgroup cgroup("cost");
  // A child in the cgroup sends packets to itself, and prints how long this took.
  for (const int type : {SOCK_DGRAM, SOCK_STREAM}) {
    int ask[2], answer[2];
    REQUIRE(::pipe2(ask, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(answer, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::close(ask[1]);  // if the child kept this end of the pipe open, it would never see the end of its input
      ::close(answer[0]);
      cgroup.write("cgroup.procs", "0");
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      socklen_t length = sizeof to;
      int in = ::socket(AF_INET, type, 0);
      const int out = ::socket(AF_INET, type, 0);
      ::bind(in, reinterpret_cast<sockaddr*>(&to), sizeof to);
      ::getsockname(in, reinterpret_cast<sockaddr*>(&to), &length);
      if (type == SOCK_STREAM) ::listen(in, 1);
      // Single bytes must not wait for the delayed acknowledgement of the previous byte.
      const int on = 1;
      if (type == SOCK_STREAM) ::setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      if (::connect(out, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) ::_exit(1);
      if (type == SOCK_STREAM) in = ::accept(in, nullptr, nullptr);
      char byte = 'x';
      while (::read(ask[0], &byte, 1) == 1) {
        const std::int64_t begin = monotonic_ns();
        for (int i = 0; i < 20'000; ++i) {
          if (::send(out, &byte, 1, 0) != 1 || ::recv(in, &byte, 1, 0) != 1) ::_exit(1);
        }
        const double ns = static_cast<double>(monotonic_ns() - begin) / 20'000;
        if (::write(answer[1], &ns, sizeof ns) != sizeof ns) ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(ask[0]);
    ::close(answer[1]);
    double best[5] = {1e9, 1e9, 1e9, 1e9, 1e9};
    const auto measure = [&](int what) {
      double ns = 0;
      REQUIRE(::write(ask[1], "x", 1) == 1);
      REQUIRE(::read(answer[0], &ns, sizeof ns) == sizeof ns);
      best[what] = std::min(best[what], ns);
    };
    const bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    LIBBPF_OPTS(bpf_prog_load_opts, options);
    options.expected_attach_type = BPF_CGROUP_INET_INGRESS;
    const Fd empty(bpf_prog_load(BPF_PROG_TYPE_CGROUP_SKB, "rose_empty", "GPL", nothing, 2, &options));
    const Fd folder(::open(cgroup.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE((empty && folder));
    Target process;
    process.node = "n1";
    process.pids = {child};
    for (int round = 0; round < 5; ++round) {
      measure(0);
      {
        const Fd link(bpf_link_create(empty.get(), folder.get(), BPF_CGROUP_INET_INGRESS, nullptr));
        REQUIRE(link);
        for (int i = 0; i < 3; ++i) measure(1);
      }
      {
        const auto tracer = start({target("n1", cgroup)});
        for (int i = 0; i < 3; ++i) measure(2);
      }
      {
        const auto tracer = start({process});
        for (int i = 0; i < 3; ++i) measure(3);
      }
      for (int i = 0; i < 2; ++i) measure(0);
    }
    WARN((type == SOCK_DGRAM ? "UDP" : "TCP")
         << " send and receive: nothing attached " << best[0] << " ns, empty program " << best[1] << " ns ("
         << best[1] / best[0] << "), a node's cgroup " << best[2] << " ns (" << best[2] / best[0]
         << ", over the empty one " << best[2] / best[1] << "), told by socket " << best[3] << " ns ("
         << best[3] / best[0] << ", over the empty one " << best[3] / best[1] << ")");
    ::close(ask[1]);
    ::close(answer[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
  }
}
