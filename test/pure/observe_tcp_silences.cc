// Silences of TCP connections are judged from samples of the kernel's state. The connections are scripted, without a
// kernel.
#include "observe/tcp_silences.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <random>

#include "base/units.h"

using namespace rose;
using rose::observe::TcpSilences;
using Silence = TcpSilences::Silence;

namespace {

constexpr std::int64_t kTick = 4 * kMillisecond;
constexpr std::int64_t kPeriod = 250 * kMillisecond;
constexpr std::int64_t kDelay = 5 * kSecond;
constexpr std::int64_t kStart = 1000 * kSecond;

rose_connection ends(int peer, int port, int own_port) {
  rose_connection made{};
  for (auto* address : {made.remote, made.local}) address[10] = address[11] = 0xff;
  made.remote[12] = made.local[12] = 10;
  made.remote[15] = static_cast<std::uint8_t>(peer);
  made.local[15] = 1;
  made.remote_port = static_cast<std::uint16_t>(port);
  made.local_port = static_cast<std::uint16_t>(own_port);
  return made;
}

// A connection of this host to a service of a peer. The fields have the meaning of the kernel's fields, and all times
// are those of the scripted clock.
struct Socket {
  rose_connection conn = ends(2, 7000, 41000);
  std::uint64_t id = 1;
  std::int64_t received_ns = 0, sent = 0;
  std::uint32_t unanswered = 0, segments = 0;
  std::uint8_t state = 1, resent = 0, probes = 0;

  void receives(std::int64_t now, std::uint32_t packets = 1) {
    received_ns = now;
    segments += packets;
    unanswered = 0;
    resent = probes = 0;
  }
  [[nodiscard]] rose_tcp at(std::int64_t now) const {
    rose_tcp tcp{};
    tcp.socket = id;
    tcp.ts_ns = static_cast<std::uint64_t>(now);
    tcp.conn = conn;
    tcp.received = static_cast<std::uint32_t>(now / kTick - received_ns / kTick);
    tcp.sent = static_cast<std::uint32_t>(now / kTick - sent / kTick);
    tcp.unanswered = unanswered;
    tcp.segments = segments;
    tcp.state = state;
    tcp.resent = resent;
    tcp.probes = probes;
    return tcp;
  }
};

class Watch {
 public:
  Watch() : silences_({.delay_ns = kDelay, .tick_ns = kTick}) {}
  void look(std::int64_t now, const std::vector<Socket*>& sockets, const std::vector<rose_closing>& closing = {}) {
    std::vector<rose_tcp> connections;
    for (const Socket* socket : sockets) connections.push_back(socket->at(now));
    for (const Silence& silence : silences_.sample(connections, closing, now)) ended.push_back(silence);
  }
  [[nodiscard]] std::vector<Silence> open() const { return silences_.ongoing(); }
  std::vector<Silence> ended;

 private:
  TcpSilences silences_;
};

std::int64_t s(double seconds) { return kStart + static_cast<std::int64_t>(seconds * 1e9); }

// A connection on which requests are sent periodically. From `from` to `to`, its link is partitioned. Lost data is
// retransmitted at intervals that double, as by TCP.
struct Line {
  std::int64_t period = kSecond, from = INT64_MAX, to = INT64_MAX;
  Socket socket;
  std::int64_t next_ns = kStart, resend_ns = INT64_MAX, wait_ns = 200 * kMillisecond, first_received_ns = 0;

  void advance(std::int64_t now) {
    for (;;) {
      const std::int64_t event = std::min(next_ns, resend_ns);
      if (event > now) return;
      const bool resends = resend_ns <= next_ns;
      socket.sent = event;
      const bool cut = event >= from && event < to;
      if (!resends) next_ns += period;
      if (!cut && (resends || socket.unanswered == 0)) {
        if (event >= to && first_received_ns == 0) first_received_ns = event;
        socket.receives(event, 2);
        resend_ns = INT64_MAX;
        wait_ns = 200 * kMillisecond;
        continue;
      }
      if (resends) {
        ++socket.resent;
        wait_ns *= 2;
      }
      socket.unanswered += resends ? 0 : 36;
      if (resends || resend_ns == INT64_MAX) resend_ns = event + wait_ns;
    }
  }
};

}  // namespace

TEST_CASE("tcp silences: of two equally long silences the one with unanswered data is a partition") {
  Watch watch;
  Socket asks, idle;
  idle.id = 2;
  idle.conn = ends(3, 7000, 41001);
  std::int64_t now = s(0);
  for (; now < s(10); now += kPeriod) {
    for (Socket* socket : {&asks, &idle}) socket->receives(now), socket->sent = now;
    watch.look(now, {&asks, &idle});
  }
  asks.unanswered = 36;
  asks.sent = now;
  for (; now < s(17); now += kPeriod) {
    if (now >= s(10.4)) asks.resent = static_cast<std::uint8_t>(1 + (now - s(10.4)) / kSecond);
    watch.look(now, {&asks, &idle});
  }
  CHECK(watch.ended.empty());
  auto open = watch.open();
  REQUIRE(open.size() == 2);
  std::sort(open.begin(), open.end(), [](const auto& a, const auto& b) { return a.pair.src[15] < b.pair.src[15]; });
  CHECK(open[0].outstanding);
  CHECK(open[0].begin_within_ns <= kPeriod + 2 * kTick);
  CHECK(open[0].pair.port == 7000);
  CHECK(open[0].pair.from_service == 1);
  CHECK_FALSE(open[1].outstanding);
  CHECK(open[1].begin_within_ns == -1);
  CHECK(open[1].usual_ns < kSecond);
  for (Socket* socket : {&asks, &idle}) socket->receives(now);
  watch.look(now, {&asks, &idle});
  CHECK(watch.ended.size() == 2);
  CHECK(watch.open().empty());
}

TEST_CASE("tcp silences: a partition right after a connect is found") {
  Watch watch;
  Socket young;
  young.receives(s(0), 1);  // this segment is only the answer to the connection's SYN
  young.unanswered = 10;
  young.sent = s(0.01);
  for (std::int64_t now = s(0.1); now < s(12); now += kPeriod) {
    if (now > s(0.3)) young.resent = 3;
    watch.look(now, {&young});
  }
  REQUIRE(watch.open().size() == 1);
  CHECK(watch.open()[0].outstanding);
  CHECK(watch.open()[0].begin_ns <= s(0));
}

TEST_CASE("tcp silences: the intervals for begin and end contain the partition's times") {
  std::mt19937_64 rng(7);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(rng);
  };
  for (int round = 0; round < 300; ++round) {
    Line line;
    line.period = between(20, 3000) * kMillisecond;
    line.from = s(20) + between(0, kSecond);
    line.to = line.from + between(13 * kSecond, 40 * kSecond);
    Watch watch;
    for (std::int64_t now = kStart; watch.ended.empty() && now < line.to + 120 * kSecond;
         now += kPeriod + between(0, 50 * kMillisecond)) {
      line.advance(now);
      watch.look(now, {&line.socket});
      // While the silence lasts, it must be detected as soon as it is long enough.
      if (now > line.from + line.period + kDelay + kSecond && now < line.to) CHECK(watch.open().size() == 1);
    }
    INFO("round " << round << ", a request every " << line.period / kMillisecond << " ms");
    REQUIRE(watch.ended.size() == 1);
    const Silence& silence = watch.ended[0];
    CHECK(silence.outstanding);
    CHECK(silence.begin_ns <= line.from);
    CHECK(silence.begin_ns + silence.begin_within_ns + kTick >= line.from);
    CHECK(silence.begin_within_ns <= line.period + kPeriod + 50 * kMillisecond + kTick);
    CHECK(silence.end_ns + kTick >= line.first_received_ns);
    CHECK(silence.end_ns - silence.end_within_ns <= line.first_received_ns + kTick);
  }
}

TEST_CASE("tcp silences: idle and bursty traffic without faults is never unanswered") {
  std::mt19937_64 rng(11);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(rng);
  };
  for (int window = 0; window < 200; ++window) {
    std::vector<Socket> sockets(static_cast<std::size_t>(between(1, 6)));
    std::vector<std::int64_t> next(sockets.size(), s(0));
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      sockets[i].id = i + 1;
      sockets[i].conn = ends(static_cast<int>(2 + i % 2), 7000, static_cast<int>(41000 + i));
    }
    // Connections differ in how long they are quiet: pooled connections are idle, long polls and websockets wait for
    // minutes, and replicas exchange data all the time.
    const std::int64_t longest = kSecond << between(0, 9);
    Watch watch;
    for (std::int64_t now = s(0); now < s(900); now += kPeriod) {
      std::vector<Socket*> all;
      for (std::size_t i = 0; i < sockets.size(); ++i) {
        Socket& socket = sockets[i];
        if (socket.unanswered != 0 || socket.probes != 0) socket.receives(now - between(0, kPeriod - kMillisecond));
        if (now >= next[i]) {
          next[i] = now + between(0, longest);
          const std::int64_t kind = between(0, 9);
          if (kind == 0) socket.probes = 1;  // a keep-alive probe is unanswered at this moment
          else if (kind < 4) socket.unanswered = 100, socket.sent = now - between(0, kMillisecond);
          else socket.receives(now, static_cast<std::uint32_t>(between(1, 9)));
        }
        all.push_back(&socket);
      }
      watch.look(now, all);
      for (const Silence& silence : watch.open()) CHECK_FALSE(silence.outstanding);
    }
    for (const Silence& silence : watch.ended) CHECK_FALSE(silence.outstanding);
  }
}

TEST_CASE("tcp silences: repeated idleness is not reported again") {
  Watch watch;
  Socket socket;
  std::int64_t now = s(0);
  for (int burst = 0; burst < 20; ++burst) {
    for (const std::int64_t end = now + 10 * kSecond; now < end; now += kPeriod) {
      socket.receives(now);
      watch.look(now, {&socket});
    }
    for (const std::int64_t end = now + 20 * kSecond; now < end; now += kPeriod) watch.look(now, {&socket});
  }
  CHECK(watch.ended.size() <= 3);
}

TEST_CASE("tcp silences: keep-alives count as requests when sent and as data when received") {
  Watch watch;
  Socket asked, asks;
  asks.id = 2;
  asks.conn = ends(3, 7000, 41001);
  for (std::int64_t now = s(0); now < s(30); now += kPeriod) {
    if (now < s(10)) {
      for (Socket* socket : {&asked, &asks}) socket->receives(now);
    } else {
      if ((now - s(0)) % (2 * kSecond) == 0) ++asked.segments;  // this segment arrives, but contains no data
      if (now >= s(12)) asks.probes = static_cast<std::uint8_t>(1 + (now - s(12)) / kSecond);
    }
    watch.look(now, {&asked, &asks});
  }
  CHECK(watch.ended.empty());
  REQUIRE(watch.open().size() == 1);
  CHECK(watch.open()[0].pair.src[15] == 3);
  CHECK(watch.open()[0].outstanding);
}

TEST_CASE("tcp silences: an answered close is no silence, an unanswered one continues it") {
  const bool answered = GENERATE(true, false);
  Watch watch;
  Socket socket;
  std::int64_t now = s(0);
  for (; now < s(10); now += kPeriod) {
    socket.receives(now);
    watch.look(now, {&socket});
  }
  for (; now < s(13); now += kPeriod) watch.look(now, {&socket});
  const rose_closing closing{socket.conn, static_cast<std::uint64_t>(now)};
  for (; now < s(20); now += kPeriod)
    watch.look(now, {}, answered ? std::vector<rose_closing>{} : std::vector{closing});
  CHECK(watch.ended.empty());
  if (answered) {
    CHECK(watch.open().empty());
    return;
  }
  REQUIRE(watch.open().size() == 1);
  CHECK(watch.open()[0].outstanding);
  watch.look(now, {});  // nothing is unanswered any more, because the peer has answered
  REQUIRE(watch.ended.size() == 1);
  CHECK(watch.ended[0].outstanding);
  CHECK(watch.open().empty());
}

TEST_CASE("tcp silences: a failing reconnect continues a silence, a new connection ends it") {
  Watch watch;
  Socket first;
  std::int64_t now = s(0);
  for (; now < s(10); now += kPeriod) {
    first.receives(now);
    watch.look(now, {&first});
  }
  Socket again;
  again.id = 2;
  again.conn = ends(2, 7000, 41002);
  again.state = 2;
  again.resent = 1;
  for (; now < s(18); now += kPeriod) watch.look(now, {&again});  // the first connection was closed in an orderly way
  REQUIRE(watch.open().size() == 1);
  CHECK(watch.open()[0].outstanding);
  again.state = 1;
  again.receives(now);
  watch.look(now, {&again});
  REQUIRE(watch.ended.size() == 1);
  CHECK(watch.ended[0].outstanding);
  CHECK(watch.ended[0].begin_ns >= s(9.7));

  // If a peer never answered, the connect fails. That is not a silence.
  Socket never;
  never.id = 3;
  never.conn = ends(9, 7000, 41003);
  never.state = 2;
  never.resent = 4;
  for (; now < s(40); now += kPeriod) again.receives(now), watch.look(now, {&again, &never});
  CHECK(watch.open().empty());
}

TEST_CASE("tcp silences: attempts to connect that are all given up are a silence") {
  // nginx with a timeout of 1 s behaves like this. Its successful connections are so short that no sample contains one.
  const auto tried = [](Watch& watch, std::int64_t from, std::int64_t to, bool same) {
    Socket attempt;
    attempt.state = 2;
    for (std::int64_t now = from; now < to; now += kPeriod) {
      const std::int64_t nth = same ? 0 : (now - from) / (4 * kPeriod);
      attempt.conn = ends(2, 80, 42000 + static_cast<int>(nth));
      if ((now - from) % (4 * kPeriod) == 3 * kPeriod && !same) watch.look(now, {});
      else watch.look(now, {&attempt});
    }
  };
  Watch watch;
  for (std::int64_t now = s(0); now < s(3); now += kPeriod) watch.look(now, {});
  tried(watch, s(3), s(12), false);
  REQUIRE(watch.open().size() == 1);
  CHECK((watch.open()[0].outstanding && watch.open()[0].begin_ns == s(3)));
  for (std::int64_t now = s(12); now < s(20); now += kPeriod) watch.look(now, {});
  REQUIRE(watch.ended.size() == 1);
  CHECK((watch.ended[0].begin_ns == s(3) && watch.ended[0].end_ns >= s(11) && watch.ended[0].end_ns < s(12)));
  CHECK(watch.ended[0].pair.port == 80);
  CHECK(watch.open().empty());

  // On a busy machine samples are late, and every third one is taken between two attempts.
  Watch late;
  Socket attempt;
  attempt.state = 2;
  for (int nth = 0; nth < 10; ++nth) {
    attempt.conn = ends(2, 80, 42000 + nth);
    if (nth % 3 == 1) late.look(s(2.6 * nth), {});
    else late.look(s(2.6 * nth), {&attempt});
  }
  REQUIRE(late.open().size() == 1);
  CHECK(late.open()[0].begin_ns == s(0));

  // There is no silence if the attempts did not last long enough, or if there was only one, which the kernel repeated
  // and which failed in the end.
  Watch other;
  tried(other, s(3), s(7), false);
  for (std::int64_t now = s(7); now < s(20); now += kPeriod) other.look(now, {});
  tried(other, s(20), s(40), true);
  CHECK((other.open().empty() && other.ended.empty()));

  // If the peer answers, the silence is over.
  Watch answered;
  tried(answered, s(0), s(8), false);
  Socket served;
  served.id = 9;
  served.conn = ends(2, 80, 43000);
  for (std::int64_t now = s(8); now < s(20); now += kPeriod) served.receives(now), answered.look(now, {&served});
  REQUIRE(answered.ended.size() == 1);
  CHECK((answered.ended[0].outstanding && answered.ended[0].end_ns <= s(8.1)));
  CHECK(answered.open().empty());
}

TEST_CASE("tcp silences: a reused socket address is taken as another connection") {
  Watch watch;
  Socket one;
  for (std::int64_t now = s(0); now < s(5); now += kPeriod) one.receives(now), watch.look(now, {&one});
  one.conn = ends(4, 7000, 41007);
  one.segments = 1;
  for (std::int64_t now = s(5); now < s(30); now += kPeriod) one.receives(now), watch.look(now, {&one});
  CHECK(watch.open().empty());
  CHECK(watch.ended.empty());
}
