// Derives partitions from silences between pairs of nodes, and from calls between them that fail as unreachable.
// Silences that begin together belong to one partition. The node that all pairs of a partition have in common was cut
// off from the others.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace rose::evidence {

// No packet from `src` arrived at `dst` in [start, end]. Times are in nanoseconds.
struct Silence {
  int src = -1;  // -1: unknown, because nodes share one address
  int dst = -1;
  std::int64_t start = 0;
  std::int64_t end = 0;
  // The cause of the silence began at most `begin_within` after `start`, and ended at most `end_within` before `end`;
  // -1: unknown.
  std::int64_t begin_within = -1;
  std::int64_t end_within = -1;
  bool idle = false;  // the receiver did not wait for an answer, but the sender did (otherwise it is no evidence)
  std::uint64_t events = 1;   // number of events of this silence in the dump
  bool open = false;          // the silence had not ended when the dump was written
  std::uint64_t packets = 0;  // number of packets exchanged before the silence on this connection
  std::uint16_t port = 0;     // the port of the service, if nodes share one address; otherwise 0
  // The sender is the side that accepted the connection. It waits for requests, so it would not have noticed a silence
  // of the other direction.
  bool from_service = false;
  int failed_at = -1;       // derived from failed calls of this node; -1: from missing packets
  std::uint64_t calls = 0;  // number of failed calls
  // number of these calls that are connects whose arrival the other node's tracer did not record
  std::uint64_t unseen = 0;
  double plain = 1;         // 0..1: how clearly the errors of the calls indicate a partition
  bool no_network = false;  // the errors of the calls mean that the node had no route (ENETUNREACH, ENETDOWN)
};

struct Partition {
  int node = -1;            // the node that was cut off
  std::vector<int> peers;   // ascending; empty: unknown, so all others
  bool all_others = false;  // `peers` are all other nodes
  schedule::Direction direction = schedule::Direction::both;
  std::vector<std::uint16_t> ports;
  std::int64_t start = 0;  // start of the earliest silence
  std::int64_t end = 0;
  // median duration of the silences; if there are only failed calls, the time from the first to the last
  std::int64_t duration = 0;
  std::uint64_t events = 0;
  bool silent = false;         // packets are missing; false: only calls failed
  bool open = false;           // most of its silences had not ended when the dump was written
  std::uint64_t calls = 0;     // number of failed calls
  std::uint64_t unseen = 0;    // sum of `unseen` of its silences
  std::vector<int> failed_at;  // nodes that made these calls, ascending
  bool no_network = false;     // some of its silences are `no_network`
  double plain = 0;            // the highest `plain` of its silences
};

// `watched`: by node, whether a tracer recorded its incoming packets; a direction counts as open only if it was
// observed. `networks`: the number of nodes with a network of their own. Every silence belongs to exactly one
// partition.
[[nodiscard]] std::vector<Partition> find_partitions(std::vector<Silence> silences, const std::vector<bool>& watched,
                                                     std::size_t networks);

}  // namespace rose::evidence
