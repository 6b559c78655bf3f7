// Derives partitions from silences between pairs of nodes and from calls that fail as unreachable: those that begin
// together are one event, and the node common to its pairs was cut off from the others.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace rose::diagnose {

// Nothing arrived from `src` at `dst` in [start, end].
struct Silence {
  int src = -1;  // -1: unknown, the nodes share one address
  int dst = -1;
  std::int64_t start = 0;
  std::int64_t end = 0;
  // The cause of the silence began at most this long after `start`, and ended at most this long before `end`; -1 if the
  // dump does not say.
  std::int64_t begin_within = -1;
  std::int64_t end_within = -1;
  bool idle = false;          // nothing was unanswered at this end; something was at the other
  std::uint64_t events = 1;   // of the dump
  bool open = false;          // it was not over when the dump was written
  std::uint64_t packets = 0;  // packets that the pair had exchanged before, on this connection
  std::uint16_t port = 0;     // the service it concerns, where addresses do not tell nodes apart
  int failed_at = -1;         // known by failed calls of this node, not by missing packets
  std::uint64_t calls = 0;    // how many calls failed
  double plain = 1;           // 0..1: how clearly their errors indicate it
};

struct Partition {
  int node = -1;
  std::vector<int> peers;   // ascending; empty: unknown, all others
  bool all_others = false;  // `peers` are all other nodes
  schedule::Direction direction = schedule::Direction::both;
  std::vector<std::uint16_t> ports;
  std::int64_t start = 0;  // the start of the earliest of its silences
  std::int64_t end = 0;
  // the median duration of its silences; for calls alone, the time from the first to the last
  std::int64_t duration = 0;
  std::uint64_t events = 0;
  bool silent = false;         // some packets were missed
  bool open = false;           // most of its silences were not over when the dump was written
  std::uint64_t calls = 0;     // that failed,
  std::vector<int> failed_at;  // on these nodes, ascending
  double plain = 0;            // of the plainest
};

// `watched`: nodes whose incoming packets a tracer recorded; a direction counts as open only if it was observed.
// `networks`: how many nodes have a network of their own. Every silence is assigned to exactly one partition.
[[nodiscard]] std::vector<Partition> find_partitions(std::vector<Silence> silences, const std::vector<bool>& watched,
                                                     std::size_t networks);

}  // namespace rose::diagnose
