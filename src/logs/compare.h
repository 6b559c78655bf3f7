// A failure's log against that of a run without faults: what only the failure has, what it lacks, where the two part.
// Node by node and thread by thread, since threads interleave anew in each run (ANDURIL, SOSP'24, section 5.1); each
// pair of threads by Myers' difference ("An O(ND) Difference Algorithm and Its Variations", 1986), within a bound of
// work.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "logs/reader.h"

namespace rose::logs {

inline constexpr std::size_t kNoNode = std::numeric_limits<std::size_t>::max();
// Edits that Myers' algorithm looks for in one thread; threads that differ more are matched by the nth message of each
// kind.
inline constexpr std::size_t kMostEdits = 2000;

// Two messages of one kind at the same point of both logs: indices into the nodes' messages.
struct Matched {
  std::uint32_t failure = 0, normal = 0;
};

// A kind of message that the failure has and the run without faults has not, or far less often.
struct Observed {
  std::size_t node = 0;  // index into the failure's nodes
  TemplateId kind = 0;
  std::uint32_t first = 0;              // its first such message
  std::uint64_t count = 0, normal = 0;  // in the failure, and in the node of the normal log that has it most often
  double weight = 0;                    // 1: no node of the normal log has it; less: it is only more frequent
};

struct Lacking {
  std::size_t node = 0;
  TemplateId kind = 0;
  std::uint64_t normal = 0;
};

struct NodeDifference {
  std::size_t normal = kNoNode;  // the node of the normal log it was compared with
  std::vector<Matched> matched;  // both ascending, over all threads: the two logs' common time line
  std::uint32_t parts = 0;       // the first message that the normal log has nothing of; as many as there are: none
};

struct Difference {
  std::vector<NodeDifference> nodes;  // as the failure's
  std::vector<Observed> observed;     // by node, then by their first message
  std::vector<Lacking> lacking;       // kinds that the failure's node never says, and the normal one does
};

// Both were read with the same `kinds`. A normal log without nodes makes everything that speaks of an error an
// observable.
[[nodiscard]] Difference compare(const Logs& failure, const Logs& normal, const Templates& kinds);

// Pairs of equal values at both sides in an order that both have, as many as can be (exactly so within kMostEdits).
[[nodiscard]] std::vector<Matched> match_sequences(std::span<const TemplateId> failure,
                                                   std::span<const TemplateId> normal);

}  // namespace rose::logs
