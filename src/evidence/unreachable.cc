#include "evidence/unreachable.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/units.h"
#include "evidence/unanswered.h"
#include "evidence/usual.h"
#include "kernel/syscalls.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

// What an error indicates. `plain`: 0..1, how clearly it indicates a partition.
struct Meaning {
  double plain = 0;
  bool out = false;  // only outgoing traffic is dropped; incoming may still arrive
};

Meaning meaning_of(int err, std::string_view syscall) {
  const bool datagram = kernel::sends_datagrams(syscall);
  switch (err) {
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN: return {1, false};
    case EPERM: return {datagram ? 1.0 : 0, true};  // the error of a packet filter that drops outgoing packets
    case EACCES:                                    // the error of a prohibiting route
    case EINVAL:                                    // the error of a blackhole route
      return {datagram ? kLikelyPartition : syscall == "connect" ? 1.0 : 0, true};
    case ETIMEDOUT: return {syscall == "connect" ? kLikelyPartition : 0, false};
    case ECONNRESET: return {kPossiblePartition, false};  // mostly caused by the end of the other side
    default: return {};
  }
}

bool may_indicate_partition(int err) {
  return meaning_of(err, "sendto").plain > 0 || meaning_of(err, "connect").plain > 0;
}

}  // namespace

std::vector<Contact> contacts(const Given& given) {
  std::optional<profile::BenignIndex> normal;
  if (given.inputs.profile) normal.emplace(*given.inputs.profile);
  std::set<std::int16_t> reaching;  // calls whose success shows that the other node was reached
  for (const char* call : {"connect", "accept", "accept4"})
    reaching.insert(static_cast<std::int16_t>(kernel::find_syscall(call)->number));
  const auto connect = static_cast<std::int16_t>(kernel::find_syscall("connect")->number);
  const auto listen = static_cast<std::int16_t>(kernel::find_syscall("listen")->number);
  std::vector<Contact> found, begun;
  Services services;
  for (std::size_t s = 0; s < given.inputs.sources.size(); ++s) {
    const Source& source = given.inputs.sources[s];
    std::vector<int> peer_of(source.strings.size() + 1, NodeMap::kNone - 2);  // kNone - 2: not determined yet
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t>
        named;  // by process and descriptor: index of the last contact by a connect
    for (const Observation& event : source.observations) {
      const bool failed = event.type == EventType::scf && may_indicate_partition(event.err);
      const bool reached = event.type == EventType::sys && event.result >= 0 && reaching.contains(event.syscall);
      if (event.type == EventType::sys && event.syscall == listen && event.result >= 0 && event.peer != 0)
        if (const int node = given.nodes.network_of(given.nodes.of(s, event)); node >= 0)
          services.listening.try_emplace({node, parse_endpoint(source.str(event.peer)).port}, event.ts_ns);
      const bool begins = event.type == EventType::sys && event.syscall == connect && event.result == -EINPROGRESS;
      if (reached || begins)
        if (const int node = given.nodes.network_of(given.nodes.of(s, event)); node >= 0)
          services.last_seen[node] = std::max(services.last_seen[node], event.ts_ns);
      if ((!failed && !reached && !begins) || event.peer == 0 || event.peer >= peer_of.size() || event.syscall < 0)
        continue;
      Contact contact{&event, -1, -1, 0, false, 0, false};
      if (failed) {
        const std::string syscall = kernel::syscall_name(event.syscall);
        const Meaning meaning = meaning_of(event.err, syscall);
        if (meaning.plain <= 0 || kernel::names_own_address(syscall)) continue;
        contact.plain = meaning.plain;
        contact.out = meaning.out;
      }
      int& peer = peer_of[event.peer];
      if (peer < NodeMap::kShared) {
        const Endpoint endpoint = parse_endpoint(source.str(event.peer));
        peer = endpoint.address.empty() ? NodeMap::kNone : given.nodes.of_address(endpoint.address);
      }
      contact.to = peer;
      contact.from = given.nodes.network_of(given.nodes.of(s, event));
      if (contact.from < 0 || contact.to < 0 || contact.from == contact.to) continue;
      if (begins) {
        contact.port = parse_endpoint(source.str(event.peer)).port;
        begun.push_back(contact);
        continue;
      }
      if (failed && normal && normal->find(source, event) != nullptr) continue;
      const std::pair descriptor{event.pid, event.fd};
      if (reached && event.fd >= 0) {
        named[descriptor] = found.size();
      } else if (const auto only = named.find(descriptor); only != named.end()) {
        // If the failed call sends datagrams, the earlier connect was that of a datagram socket. Such a connect sends
        // nothing, so its success does not show that the peer was reached.
        if (kernel::sends_datagrams(kernel::syscall_name(event.syscall))) found[only->second].event = nullptr;
        named.erase(only);
      }
      found.push_back(contact);
    }
  }
  std::erase_if(found, [](const Contact& contact) { return contact.event == nullptr; });
  // If a tracer lost events, the missing accepts may be among them.
  const std::vector<Source>& sources = given.inputs.sources;
  if (std::none_of(sources.begin(), sources.end(), [](const Source& source) { return source.meta.lost > 0; }))
    for (const Contact& contact : unanswered(std::move(begun), found, services)) found.push_back(contact);
  std::stable_sort(found.begin(), found.end(),
                   [](const Contact& a, const Contact& b) { return a.event->ts_ns < b.event->ts_ns; });
  return found;
}

std::vector<Silence> unreachable(const Given& given, const Times& times, const std::vector<Contact>& contacts,
                                 const Causes& causes, bool clearly) {
  struct Period {
    std::int64_t first = 0, last = 0;
    std::uint64_t calls = 0;
    std::uint64_t unseen = 0;
    double plain = 0;
    bool out = true;
    bool no_network = false;  // a node had no route to the other one
    std::int64_t early = 0;   // the partition began this long before the first failure
  };
  std::map<std::pair<int, int>, std::vector<Period>> pairs;
  // Pairs of nodes. reached_since: the first node has reached the second one since its last failure to do so.
  // answered_since: the second node has reached the first one since that failure.
  std::set<std::pair<int, int>> reached_since, answered_since;
  for (const Contact& c : contacts) {
    const std::pair pair{c.from, c.to};
    if (c.plain <= 0) {
      reached_since.insert(pair);
      answered_since.emplace(c.to, c.from);
      continue;
    }
    const Observation& event = *c.event;
    if ((c.plain >= 1) != clearly || causes.explaining(event, c.from, c.to, true) != nullptr) continue;
    std::vector<Period>& periods = pairs[pair];
    const bool reached_itself = reached_since.erase(pair) > 0, reached_by_it = answered_since.erase(pair) > 0;
    const bool reached = reached_itself || (reached_by_it && !c.out);
    if (periods.empty() || event.ts_ns - periods.back().last > kSeparateFailures || reached)
      periods.push_back({event.ts_ns, event.ts_ns, 0, 0, 0, true, false, event.err == EHOSTUNREACH ? kArpTimeout : 0});
    Period& period = periods.back();
    period.last = event.ts_ns;
    period.calls += weight_of(event);
    if (c.unseen) period.unseen += weight_of(event);
    period.plain = std::max(period.plain, c.plain * event.how().reliability);
    period.out = period.out && c.out;
    period.no_network = period.no_network || event.err == ENETUNREACH || event.err == ENETDOWN;
  }
  std::vector<Silence> silences;
  for (const auto& [pair, periods] : pairs) {
    std::vector<std::int64_t> begun;
    for (const Period& period : periods) begun.push_back(period.first);
    const bool usual = all_the_time(std::move(begun), given.longest_ns);
    for (const Period& period : periods) {
      Silence silence;
      silence.src = pair.first;
      silence.dst = pair.second;
      silence.start = std::max(times.begin, period.first - period.early);
      const std::int64_t gap =
          period.calls > 1 ? (period.last - period.first) / static_cast<std::int64_t>(period.calls - 1) : 0;
      silence.end = std::max(period.last + std::min(gap, kAfterLastFailure), silence.start + kLeastNoticed);
      // The silence had not ended if the dump was written before the next attempt was due.
      silence.open = &period == &periods.back() && period.calls > 1 && !reached_since.contains(pair) &&
                     (period.out || !answered_since.contains(pair)) &&
                     times.end - period.last <= 2 * std::max(gap, kLeastNoticed);
      if (silence.open) silence.end = std::max(silence.end, times.end);
      silence.events = 0;
      silence.failed_at = pair.first;
      silence.calls = period.calls;
      silence.unseen = period.unseen;
      silence.no_network = period.no_network;
      silence.plain = period.plain * (usual ? kOddsUsual : 1);
      silences.push_back(silence);
      if (period.out) continue;
      std::swap(silence.src, silence.dst);
      silence.calls = silence.unseen = 0;
      silences.push_back(silence);
    }
  }
  return silences;
}

bool is_sufficient(const Partition& partition) {
  if (partition.plain < kLeastReported && partition.calls < kResetsOfPartition * partition.peers.size()) return false;
  if (partition.peers.size() > 1 || partition.failed_at.size() > 1) return true;
  // If repeated attempts of one node did not reach the other node, the dumps of both nodes show this. So attempts of
  // the other node are not needed as evidence.
  if (partition.unseen >= kResetsOfPartition) return true;
  // Of one pair only, the error must be unambiguous and repeated. If the node has no route, its own network is down,
  // and it need not have tried to reach other nodes. If only the other host is unreachable, that host may be off.
  return (partition.all_others || partition.no_network) && partition.plain >= 1 && partition.calls > 1;
}

}  // namespace rose::evidence
