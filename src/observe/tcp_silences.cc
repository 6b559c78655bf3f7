#include "observe/tcp_silences.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rose::observe {
namespace {

// Values as in the kernel (include/net/tcp_states.h).
enum TcpState : std::uint8_t { kSynSent = 2, kListen = 10 };

// Data that is not acknowledged within this time is unanswered, even if it was not retransmitted.
constexpr std::int64_t kAnswered = 1'000'000'000;
constexpr std::int64_t kLeastResend = 200'000'000;  // shortest time until Linux retransmits
// A reachable peer answers the end of a connection, and a keep-alive, within this time.
constexpr std::int64_t kAnswersEnd = ROSE_ANSWER_NS;
// A silence without unanswered data is reported only if at least this many packets arrived before it.
constexpr std::uint64_t kUsed = 5;
// A silence without unanswered data must be this many times as long as the usual silence.
constexpr std::int64_t kUsualFactor = 3;
// A pair without connections is remembered for this long, so that a peer that reconnects is recognised.
constexpr std::int64_t kRemembered = 600'000'000'000;

bool same_ends(const rose_connection& a, const rose_connection& b) {
  return std::memcmp(a.remote, b.remote, sizeof a.remote) == 0 && std::memcmp(a.local, b.local, sizeof a.local) == 0 &&
         a.remote_port == b.remote_port && a.local_port == b.local_port;
}

}  // namespace

TcpSilences::Key TcpSilences::key_of(const rose_tcp& tcp) const {
  const rose_connection& ends = tcp.conn;
  // The port of the service identifies the pair, because it is the same after a reconnect.
  const bool remote_ephemeral = is_ephemeral(ends.remote_port), local_ephemeral = is_ephemeral(ends.local_port);
  bool remote_is_service = ends.remote_port <= ends.local_port;
  if (services_.contains({tcp.node, ends.local_port})) remote_is_service = false;
  else if (remote_ephemeral != local_ephemeral) remote_is_service = local_ephemeral;
  else if (std::any_of(services_.begin(), services_.end(),
                       [&](const auto& service) { return service.second == ends.remote_port; }))
    remote_is_service = true;
  return {std::to_array(ends.remote), std::to_array(ends.local), tcp.node,
          remote_is_service ? ends.remote_port : ends.local_port, remote_is_service};
}

void TcpSilences::take(const rose_tcp& tcp) {
  const auto now_ns = static_cast<std::int64_t>(tcp.ts_ns);
  auto [at, fresh] = connections_.try_emplace(tcp.socket);
  Connection& connection = at->second;
  // a sample contains a connection once for each process that shares its socket
  if (!fresh && connection.sample == sample_) return;
  if (!fresh && !same_ends(connection.ends, tcp.conn)) {
    // The key is the address of the kernel's socket. Another connection may reuse it after the first was closed.
    if (const auto pair = pairs_.find(connection.key); pair != pairs_.end()) --pair->second.open;
    connection = {};
    fresh = true;
  }
  if (fresh) {
    connection.key = key_of(tcp);
    connection.ends = tcp.conn;
    if (!pairs_.contains(connection.key) && pairs_.size() >= options_.most_pairs) {
      ++left_out_;
      connections_.erase(at);
      return;
    }
    ++pairs_[connection.key].open;
  }
  Pair& pair = pairs_.at(connection.key);
  if (pair.first_ns == 0) pair.first_ns = now_ns;
  connection.sample = sample_;
  connection.missing = false;

  if (tcp.state != kSynSent) {
    // Ages are rounded to whole jiffies, so take the earliest possible time.
    std::int64_t received = now_ns - (std::int64_t{tcp.received} + 1) * options_.tick_ns;
    const std::uint32_t arrived = tcp.segments - connection.segments;
    // A segment without data that acknowledges nothing new, such as a keep-alive, changes only the number of segments.
    if (!fresh && arrived != 0 && received <= connection.received_ns + options_.tick_ns) received = now_ns;
    pair.packets += arrived;
    if (received > connection.received_ns + 2 * options_.tick_ns) {
      connection.received_ns = received;
      connection.waiting_ns = 0;  // the packet may have answered earlier data
    }
    connection.segments = tcp.segments;
    pair.fresh_ns = std::max(pair.fresh_ns, connection.received_ns);
  }
  if (tcp.state == kSynSent) {
    pair.asked_now = true;
    if (fresh) ++pair.attempts;
  }
  const std::int64_t sent_ns = now_ns - std::int64_t{tcp.sent} * options_.tick_ns;
  const bool waits = tcp.unanswered > 0 || tcp.state == kSynSent;
  if (!waits) connection.waiting_ns = 0;
  else if (connection.waiting_ns == 0)
    // Data that was retransmitted was sent after the previous sample and at least kLeastResend ago. If nothing was
    // retransmitted, the unanswered data is the data that was sent last.
    connection.waiting_ns = tcp.state == kSynSent ? now_ns
                            : tcp.resent > 0 ? std::max({before_ns_, connection.received_ns, now_ns - kLeastResend})
                                             : std::clamp(sent_ns, std::min(connection.received_ns, now_ns), now_ns);
  if (tcp.probes == 0) connection.probing_ns = 0;
  else if (connection.probing_ns == 0) connection.probing_ns = now_ns;
  const bool probes = connection.probing_ns != 0 && now_ns - connection.probing_ns >= kAnswersEnd;
  connection.overdue =
      tcp.resent > 0 || probes || (waits && tcp.state != kSynSent && now_ns - connection.waiting_ns >= kAnswered);
  if (!connection.overdue) return;
  const std::int64_t since = connection.waiting_ns != 0 ? connection.waiting_ns : connection.probing_ns;
  pair.unanswered_now_ns = pair.unanswered_now_ns == 0 ? since : std::min(pair.unanswered_now_ns, since);
}

// Handles connections that are missing in the sample, because no file refers to them any more: the peer has
// acknowledged their end, or they are in `closing`.
void TcpSilences::take_closed(std::span<const rose_closing> closing, std::int64_t now_ns) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    Connection& connection = at->second;
    if (connection.sample == sample_) {
      ++at;
      continue;
    }
    Pair& pair = pairs_.at(connection.key);
    const auto end = std::find_if(closing.begin(), closing.end(),
                                  [&](const rose_closing& each) { return same_ends(each.conn, connection.ends); });
    const bool waits = end != closing.end() && static_cast<std::int64_t>(end->closed_ns) > pair.last_ns &&
                       now_ns - static_cast<std::int64_t>(end->closed_ns) < kRemembered;
    // A connection may be missing in one sample before it appears in `closing`, so wait for the next sample.
    if (end == closing.end() && !connection.closing && !std::exchange(connection.missing, true)) {
      ++at;
      continue;
    }
    if (!waits) {
      // The peer acknowledged the end of the connection. So it was reachable, although earlier data had been
      // unanswered.
      if (connection.closing && connection.overdue && end == closing.end())
        pair.fresh_ns = std::max(pair.fresh_ns, now_ns);
      --pair.open;
      at = connections_.erase(at);
      continue;
    }
    connection.closing = true;
    const auto closed_ns = static_cast<std::int64_t>(end->closed_ns);
    if (connection.overdue || now_ns - closed_ns >= kAnswersEnd) {
      connection.overdue = true;
      const std::int64_t since = connection.waiting_ns != 0 ? std::min(connection.waiting_ns, closed_ns) : closed_ns;
      pair.unanswered_now_ns = pair.unanswered_now_ns == 0 ? since : std::min(pair.unanswered_now_ns, since);
    }
    ++at;
  }
}

rose_pair TcpSilences::pair_of(const Key& key) {
  const auto& [src, dst, node, port, from_service] = key;
  rose_pair pair{};
  pair.node = node;
  pair.port = port;
  pair.protocol = 6;
  pair.from_service = from_service ? 1 : 0;
  std::copy(src.begin(), src.end(), pair.src);
  std::copy(dst.begin(), dst.end(), pair.dst);
  return pair;
}

// True if the pair's silence up to `end_ns` is to be reported.
bool TcpSilences::is_reported(const Pair& pair, std::int64_t end_ns, Silence& out) const {
  const std::int64_t gap = end_ns - pair.last_ns;
  if (pair.last_ns == 0 || gap < options_.delay_ns) return false;
  out.begin_ns = pair.last_ns;
  out.end_ns = end_ns;
  out.usual_ns = pair.usual_ns;
  out.packets = pair.packets;
  // If the silence began long before data was sent, the pair may have been idle until then. Therefore, the part of the
  // silence after the data was sent must be at least half of the threshold.
  out.outstanding = pair.unanswered_since_ns != 0 && 2 * (end_ns - pair.unanswered_since_ns) >= options_.delay_ns;
  out.begin_within_ns = out.outstanding ? std::max<std::int64_t>(0, pair.unanswered_since_ns - pair.last_ns) : -1;
  out.end_within_ns = -1;
  if (out.outstanding) return true;
  // An idle silence is reported if it is far longer than usual and the pair was in use for a while.
  return pair.packets >= kUsed && gap > kUsualFactor * pair.usual_ns &&
         pair.last_ns - pair.first_ns >= options_.delay_ns / 2;
}

// True if attempts to connect remained unanswered long enough to be reported. A client that gives up each attempt and
// starts a new one leaves neither a failed call nor a silent connection. A single attempt is not reported, because it
// ends as a failed connect().
bool TcpSilences::is_asked_in_vain(const Pair& pair, std::int64_t end_ns, Silence& out) const {
  constexpr std::uint32_t kRepeated = 2;
  const bool reported_otherwise = pair.last_ns != 0 && pair.unanswered_since_ns != 0;
  if (pair.asking_since_ns == 0 || pair.attempts < kRepeated || reported_otherwise ||
      end_ns - pair.asking_since_ns < options_.delay_ns)
    return false;
  out.begin_ns = pair.asking_since_ns;
  out.end_ns = end_ns;
  out.outstanding = true;
  out.usual_ns = pair.usual_ns;
  out.packets = pair.packets;
  return true;
}

// Updates the state of attempts to connect. Returns true if a silence ended that is to be reported.
bool TcpSilences::end_asking(Pair& pair, std::int64_t now_ns, Silence& out) const {
  bool reported = false;
  const bool answered = pair.asking_since_ns != 0 && pair.fresh_ns > pair.asking_since_ns;
  // Clients wait between attempts, so the attempts are over only after a while. Connections that succeed are often too
  // short to be in a sample. On a busy machine samples are late, and a single sample may fall between two attempts, so
  // only several samples without an attempt show that the attempts are over.
  constexpr std::uint32_t kQuiet = 2;
  pair.quiet = pair.asked_now ? 0 : pair.quiet + 1;
  const bool over = pair.asking_since_ns != 0 && pair.quiet >= kQuiet && now_ns - pair.asked_ns > options_.delay_ns / 2;
  if (answered || over) {
    const std::int64_t end = answered ? std::min(now_ns, pair.fresh_ns + 2 * options_.tick_ns) : pair.asked_ns;
    reported = is_asked_in_vain(pair, end, out);
    pair.asking_since_ns = 0;
    pair.attempts = pair.asked_now ? 1 : 0;
  }
  if (pair.asked_now && !answered) {
    if (pair.asking_since_ns == 0) pair.asking_since_ns = now_ns;
    pair.asked_ns = now_ns;
  } else if (pair.asking_since_ns == 0) {
    pair.attempts = 0;
  }
  return reported;
}

std::vector<TcpSilences::Silence> TcpSilences::sample(std::span<const rose_tcp> connections,
                                                      std::span<const rose_closing> closing, std::int64_t now_ns) {
  ++sample_;
  before_ns_ = std::exchange(now_ns_, now_ns);
  services_.clear();
  for (const rose_tcp& tcp : connections)
    if (tcp.state == kListen) services_.emplace(tcp.node, tcp.conn.local_port);
  for (auto& [key, pair] : pairs_) {
    pair.fresh_ns = pair.unanswered_now_ns = 0;
    pair.asked_now = false;
  }
  for (const rose_tcp& tcp : connections)
    if (tcp.state != kListen) take(tcp);
  take_closed(closing, now_ns);

  std::vector<Silence> ended;
  for (auto at = pairs_.begin(); at != pairs_.end();) {
    Pair& pair = at->second;
    if (Silence silence; end_asking(pair, now_ns, silence)) {
      silence.pair = pair_of(at->first);
      ended.push_back(silence);
    }
    if (pair.last_ns == 0 || pair.closed_ns != 0) {
      // The pair is new, or has reconnected after all its connections had been closed: the time without connections was
      // not a silence.
      pair.last_ns = std::max(pair.last_ns, pair.fresh_ns);
      pair.unanswered_since_ns = pair.unanswered_now_ns;
    } else if (pair.fresh_ns > pair.last_ns + 2 * options_.tick_ns) {
      const std::int64_t end = std::min(now_ns, pair.fresh_ns + 2 * options_.tick_ns);
      const std::int64_t certain = pair.seen_ns - pair.last_ns;  // the part of the silence up to the previous sample
      Silence silence;
      silence.pair = pair_of(at->first);
      // If several packets arrived since the previous sample, the time of the first is unknown. So require that the
      // silence had lasted at least half of the threshold at the previous sample.
      const bool reported = 2 * certain >= options_.delay_ns && is_reported(pair, end, silence);
      if (reported) {
        silence.end_within_ns = end - std::max(pair.seen_ns, pair.last_ns);
        ended.push_back(silence);
      }
      const std::int64_t gap = certain > 0 ? certain : 0;
      if (gap < options_.delay_ns) {
        // The usual gap decays by an eighth in each delay_ns.
        pair.usual_ns -= static_cast<std::int64_t>(static_cast<double>(pair.usual_ns) / 8 * static_cast<double>(gap) /
                                                   static_cast<double>(options_.delay_ns));
        pair.usual_ns = std::max(pair.usual_ns, gap);
      } else if (gap > pair.usual_ns && !(reported && silence.outstanding)) {
        // Adapt to repeated silences, because they are the normal use of this pair. Do not adapt to silences with
        // unanswered data.
        pair.usual_ns += (gap - pair.usual_ns) / (reported ? 4 : 2);
      }
      pair.last_ns = pair.fresh_ns;
      pair.unanswered_since_ns = 0;
    } else if (pair.unanswered_now_ns != 0) {
      const std::int64_t since = std::max(pair.unanswered_now_ns, pair.last_ns);
      pair.unanswered_since_ns = pair.unanswered_since_ns == 0 ? since : std::min(pair.unanswered_since_ns, since);
    }
    pair.seen_ns = now_ns;
    if (pair.open != 0 && (pair.fresh_ns != 0 || pair.unanswered_since_ns != 0)) pair.closed_ns = 0;
    else if (pair.closed_ns == 0) pair.closed_ns = now_ns;
    if (pair.closed_ns != 0 && now_ns - pair.closed_ns > kRemembered) at = pairs_.erase(at);
    else ++at;
  }
  return ended;
}

std::vector<TcpSilences::Silence> TcpSilences::ongoing() const {
  std::vector<Silence> found;
  for (const auto& [key, pair] : pairs_) {
    Silence silence;
    silence.pair = pair_of(key);
    if ((pair.open != 0 && is_reported(pair, now_ns_, silence)) || is_asked_in_vain(pair, pair.asked_ns, silence))
      found.push_back(silence);
  }
  return found;
}

}  // namespace rose::observe
