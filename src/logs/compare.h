// Compares a failure's log with that of a run without faults (the normal log). Matches the messages that both logs
// contain, and finds those that only the failure's log contains. The comparison is by node and by thread, because
// threads interleave differently in each run (ANDURIL, SOSP'24, section 5.1). Two threads are compared by Myers'
// algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986), which gives up if the threads differ by more
// than kMostEdits.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "logs/reader.h"

namespace rose::logs {

inline constexpr std::size_t kNoNode = std::numeric_limits<std::size_t>::max();
// Myers' algorithm gives up on a thread that differs by more edits than this. The messages of such a thread are matched
// by occurrence: the nth message of a kind with the nth message of the same kind in the other log.
inline constexpr std::size_t kMostEdits = 2000;

// Two matching messages: indices into the messages of the failure's node and of the normal node.
struct Matched {
  std::uint32_t failure = 0, normal = 0;
};

// An observable: a kind of message that the failure has, and the normal log does not have or has far less often.
struct Observed {
  std::size_t node = 0;  // index into the failure's nodes
  TemplateId kind = 0;
  std::uint32_t first = 0;  // index of the first unmatched message of this kind
  // number of these messages in the failure, and in the normal node that has the most of them
  std::uint64_t count = 0, normal = 0;
  // 1: no normal node logs this kind of message; less than 1: a normal node logs it less often, or it is neither a
  // warning nor an error
  double weight = 0;
};

struct NodeDifference {
  std::size_t normal = kNoNode;  // index of the normal log's node with which this node was compared
  // the matching messages of all threads. Their indices ascend in both logs, so they are the common time line of the
  // logs.
  std::vector<Matched> matched;
};

struct Difference {
  std::vector<NodeDifference> nodes;  // in the order of the failure's nodes
  std::vector<Observed> observed;     // by node, then by first message
};

// Both logs must have been read with the same `kinds`. If the normal log has no nodes, all warnings and all messages
// that name an error are observables.
[[nodiscard]] Difference compare(const Logs& failure, const Logs& normal, const Templates& kinds);

// Pairs of equal values whose indices ascend in both sequences. The list is the longest one possible if the sequences
// differ by at most kMostEdits; otherwise it may be shorter.
[[nodiscard]] std::vector<Matched> match_sequences(std::span<const TemplateId> failure,
                                                   std::span<const TemplateId> normal);

}  // namespace rose::logs
