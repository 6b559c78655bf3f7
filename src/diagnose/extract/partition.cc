#include "diagnose/extract/partition.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "diagnose/words.h"
#include "evidence/forms.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostPorts = 16;  // ports in one fault

Fault fault_of(const Given& given, const Partition& partition, Ids& ids) {
  Fault fault;
  fault.kind = FaultKind::partition;
  fault.node = given.name(partition.node);
  fault.id = ids.next("cut-" + fault.node);
  fault.direction = partition.direction;
  fault.ports = partition.ports;
  if (fault.ports.size() > kMostPorts) fault.ports.resize(kMostPorts);
  fault.duration_ns = rounded(partition.duration);
  if (!partition.all_others)
    for (const int peer : partition.peers) fault.peers.push_back(given.name(peer));
  return fault;
}

// The message that states most clearly that a connection of the partition was silent at that time; if several are
// equally clear, the first. nullptr if there is none.
const Origin* origin_of(const Given& given, const Facts& facts, const Partition& partition) {
  const Origin* plainest = nullptr;
  for (const auto& [s, event] : facts.silences) {
    const bool then = event->ts_ns >= partition.start &&
                      event->ts_ns - std::max(event->duration_ms, 0) * kMillisecond <= partition.end;
    if (event->seen() || !then || (plainest != nullptr && event->how().reliability <= plainest->reliability)) continue;
    const evidence::Source& source = given.inputs.sources[s];
    const int src = given.nodes.of_address(source.str(event->src)),
              dst = given.nodes.of_address(source.str(event->dst));
    const int other = src == partition.node ? dst : dst == partition.node ? src : -1;
    if (std::find(partition.peers.begin(), partition.peers.end(), other) != partition.peers.end())
      plainest = &event->how();
  }
  return plainest;
}

// Wider shapes of the partition: only pairs that communicate fall silent, so the dump may not show all of the
// partition.
std::vector<Fault> further(const Given& given, const Partition& partition, const Fault& base) {
  std::vector<Fault> shapes;
  if (partition.direction != schedule::Direction::both) {
    Fault both = base;
    both.direction = schedule::Direction::both;
    shapes.push_back(std::move(both));
  }
  if (!partition.silent && partition.direction == schedule::Direction::both &&
      partition.failed_at == std::vector<int>{partition.node}) {
    Fault out = base;  // calls failed only on the node itself, so perhaps only its outgoing packets were dropped
    out.direction = schedule::Direction::out;
    shapes.push_back(std::move(out));
  }
  if (!base.peers.empty()) {
    Fault wide = base;
    wide.peers.clear();
    shapes.push_back(wide);
    if (partition.peers.size() == 1) {
      wide.node = given.name(partition.peers[0]);
      wide.id += "-other";
      if (wide.direction != schedule::Direction::both)
        wide.direction = wide.direction == schedule::Direction::in ? schedule::Direction::out : schedule::Direction::in;
      shapes.push_back(std::move(wide));
    }
  }
  return shapes;
}

// Adds the shapes in which only one direction is cut. Connections then fall silent in the other direction as well,
// because nothing is acknowledged or answered. Only messages that need no answer (heartbeats in datagrams) still
// arrive, and a dump does not contain these. So if both directions are silent, perhaps only one of them was cut.
void add_one_way(Candidate& c) {
  if (c.fault.direction != schedule::Direction::both) return;
  for (const schedule::Direction one_way : {schedule::Direction::out, schedule::Direction::in}) {
    Fault shape = c.fault;
    shape.direction = one_way;
    const bool known = std::any_of(c.alternatives.begin(), c.alternatives.end(), [&](const Fault& other) {
      return other.node == shape.node && other.peers == shape.peers && other.direction == one_way;
    });
    if (!known) c.alternatives.push_back(std::move(shape));
  }
}

}  // namespace

Candidate partition_candidate(const Given& given, const Facts& facts, const Partition& partition, Ids& ids) {
  Fault fault = fault_of(given, partition, ids);
  std::vector<Fault> shapes = further(given, partition, fault);
  // Failed calls are candidates of their own, which already count these events.
  Candidate c = candidate_of(std::move(fault), partition.events, partition.start);
  c.alternatives = std::move(shapes);
  c.last_ts = partition.end;
  for (const int peer : partition.peers) c.peer += fmt::format("{}{}", c.peer.empty() ? "" : ", ", given.name(peer));
  if (partition.open) add_unended_duration(c, facts.times, 0);
  const std::string others = c.peer.empty() ? "all others" : c.peer;
  const std::string length = format_duration(rounded(partition.duration));
  const std::string since = facts.times.at(partition.start);
  if (partition.silent) {
    const char* way = partition.direction == schedule::Direction::in    ? "nothing reached {0} from {1}"
                      : partition.direction == schedule::Direction::out ? "nothing reached {1} from {0}"
                                                                        : "silence between {0} and {1}";
    c.why = fmt::format("{} for {}, from {}", fmt::format(fmt::runtime(way), c.node, others), length, since);
    if (partition.calls > 0)
      c.why += fmt::format("; {} calls between them failed as unreachable or were not answered", partition.calls);
  } else {
    c.plainness = partition.plain;
    c.known = Known::inferred;
    c.why = fmt::format("{} calls between {} and {} failed as unreachable or were not answered in {}, from {}",
                        partition.calls, c.node, others, length, since);
  }
  if (partition.open) c.why += ", and still so when the dump was written";
  if (const Origin* origin = origin_of(given, facts, partition); origin != nullptr) {
    const std::string seen = c.why;
    set_origin(c, *origin);
    c.why = fmt::format("{}; {}", c.why, seen);
  }
  if (!c.assumed && c.plainness >= kLikelyPartition) add_one_way(c);
  return c;
}

}  // namespace rose::diagnose
