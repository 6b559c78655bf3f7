#include "explain/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <tuple>

#include "base/ports.h"
#include "explain/recorded.h"

namespace rose::explain {
namespace {

// ns: a datagram that was not received within this time counts as lost
constexpr std::int64_t kUnderWay = 30'000'000'000;
constexpr std::size_t kMostUnderWay = 256;  // at most this many equal datagrams that were not received yet are compared
constexpr std::int64_t kEarlier = 50'000'000;  // ns by which a receiving call may return before the sending call does

using End = std::pair<std::string, std::uint16_t>;  // address and port

// Compares sequence numbers by their difference, because they wrap around.
bool reached(std::uint32_t taken, std::uint32_t wanted) { return static_cast<std::int32_t>(taken - wanted) >= 0; }

// Determines the node at the other end of a connection. Nodes may share an address, so a recorded socket of a node
// takes precedence over the node's address.
class Ends {
 public:
  Ends(const std::vector<schedule::Message>& messages, const std::map<std::string, std::string>& nodes)
      : nodes_(nodes) {
    for (const schedule::Message& one : messages) owners_.emplace(End(one.own, one.own_port), one.node);
  }
  [[nodiscard]] std::string node_at(const std::string& address, std::uint16_t port) const {
    if (const auto owner = owners_.find(End(address, port)); owner != owners_.end()) return owner->second;
    const auto node = nodes_.find(address);
    return node == nodes_.end() ? std::string() : node->second;
  }

 private:
  std::map<End, std::string> owners_;
  const std::map<std::string, std::string>& nodes_;
};

bool is_end(const schedule::Message& one) { return one.taken && one.tcp && one.bytes == 0; }

struct Waiting {
  std::size_t message = 0;  // index of the exchanged message
  std::uint32_t end = 0;
};

}  // namespace

std::string spoken_words(std::string_view data, std::uint32_t bytes) {
  std::string text(data);
  const bool whole = data.size() >= bytes;
  const bool printable = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
  });
  if (printable) {
    // A word that is cut off would differ each time, so remove it.
    if (!whole)
      if (const std::size_t end = text.find_last_of(" \t\r\n,;&="); end != std::string::npos && end > 0)
        text.resize(end);
    std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    while (!text.empty() && text.back() == ' ') text.pop_back();
    if (!text.empty()) {
      std::string words = recorded_words(text);
      if (!whole) words.insert(words.size() - 1, "...");
      return words;
    }
  }
  std::uint32_t size = 8;
  while (size < bytes && size < (1U << 31)) size *= 2;
  if (bytes <= 8) return fmt::format("{} bytes", bytes);
  // In many protocols, a message begins with its length.
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(data[i])); };
  if (data.size() > 4) {
    const std::uint32_t big = at(0) << 24 | at(1) << 16 | at(2) << 8 | at(3),
                        little = at(3) << 24 | at(2) << 16 | at(1) << 8 | at(0);
    if (big == bytes - 4 || little == bytes - 4)
      return fmt::format("at most {} bytes, the first after their length {:02x}", size, at(4));
  }
  return data.empty() ? fmt::format("at most {} bytes", size)
                      : fmt::format("at most {} bytes, the first {:02x}", size, at(0));
}

std::vector<Exchanged> exchanged(const std::vector<schedule::Message>& messages,
                                 const std::map<std::string, std::string>& nodes) {
  const Ends ends(messages, nodes);
  std::vector<Exchanged> out;
  // TCP messages by the ends of sender and receiver; UDP messages by receiver, its port, size and contents.
  std::map<std::pair<End, End>, std::vector<Waiting>> streams;
  std::map<std::tuple<std::string, std::uint16_t, std::uint32_t, std::string>, std::deque<std::size_t>> datagrams;
  for (const schedule::Message& one : messages) {
    const bool end = is_end(one);
    if ((one.taken && !end) || out.size() == kMostExchanged) continue;
    const std::string other_node = ends.node_at(one.peer, one.peer_port);
    if (other_node.empty() || other_node == one.node) continue;
    // After a reset, a client's socket has no port any more.
    const bool chosen = one.own_port >= kFirstClientPort || one.own_port == 0;
    const bool others_chosen = one.peer_port >= kFirstClientPort;
    const bool serves = chosen != others_chosen ? others_chosen : one.own_port < one.peer_port;
    Exchanged sent;
    sent.port = serves ? one.own_port : one.peer_port;
    if (end) {
      sent.ts_ns = sent.taken_ns = one.ts_ns;
      sent.from = other_node;
      sent.to = one.node;
      sent.answer = !serves;
      sent.taken_pid = one.pid;
      sent.taken_tid = one.tid;
      out.push_back(std::move(sent));
      continue;
    }
    sent.ts_ns = one.ts_ns;
    sent.from = one.node;
    sent.to = other_node;
    sent.answer = serves;
    sent.bytes = one.bytes;
    sent.pid = one.pid;
    sent.tid = one.tid;
    sent.words = spoken_words(one.data, one.bytes);
    if (one.tcp) streams[{End(one.own, one.own_port), End(one.peer, one.peer_port)}].push_back({out.size(), one.end});
    else datagrams[{other_node, one.peer_port, one.bytes, one.data}].push_back(out.size());
    out.push_back(std::move(sent));
  }
  std::map<std::pair<End, End>, std::size_t> next;  // by stream: index of the first message that was not received yet
  const auto take = [&](std::size_t i, const schedule::Message& one) {
    out[i].taken_ns = std::max(one.ts_ns, out[i].ts_ns);
    out[i].taken_pid = one.pid;
    out[i].taken_tid = one.tid;
  };
  for (const schedule::Message& one : messages) {
    if (!one.taken || is_end(one)) continue;
    if (one.tcp) {
      const std::pair<End, End> stream{End(one.peer, one.peer_port), End(one.own, one.own_port)};
      const auto sent = streams.find(stream);
      if (sent == streams.end()) continue;
      std::size_t& at = next[stream];
      // This call cannot have received data that was sent much later: the port was then reused, with other sequence
      // numbers.
      while (at < sent->second.size() && reached(one.end, sent->second[at].end) &&
             out[sent->second[at].message].ts_ns <= one.ts_ns + kEarlier)
        take(sent->second[at++].message, one);
      continue;
    }
    const auto sent = datagrams.find({one.node, one.own_port, one.bytes, one.data});
    if (sent == datagrams.end()) continue;
    std::deque<std::size_t>& waiting = sent->second;
    while (!waiting.empty() && out[waiting.front()].ts_ns < one.ts_ns - kUnderWay) waiting.pop_front();
    const std::string from = one.peer_port == 0 ? std::string() : ends.node_at(one.peer, one.peer_port);
    for (std::size_t i = 0;
         i < std::min(waiting.size(), kMostUnderWay) && out[waiting[i]].ts_ns <= one.ts_ns + kEarlier; ++i) {
      if (!from.empty() && out[waiting[i]].from != from) continue;
      take(waiting[i], one);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  return out;
}

}  // namespace rose::explain
