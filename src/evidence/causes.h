// Causes: events that explain later failures, namely ends and pauses of processes, and partitions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "evidence/given.h"

namespace rose::evidence {

enum class CauseKind { killed, ended_itself, paused, planned, partition };

struct Cause {
  CauseKind kind = CauseKind::killed;
  int node = -1;
  std::vector<int> peers;  // of a partition: the nodes from which `node` is cut off; empty: all
  std::int64_t start = 0;
  std::int64_t end = 0;  // when the cause's direct effect ended: the process ran again, or the partition had healed
  std::string words;     // "n1 was killed"
  bool partly = false;   // other processes of the node continued
  // Only for an end: the time at which the main process ended (or, if it continued, the process that ended first). This
  // process may have used its disk until then. 0: a signal from outside killed it.
  std::int64_t lead_ended_ns = 0;
  double plainness = 1;       // how clearly the evidence states the cause
  bool main_unknown = false;  // of an end: it is unknown which process is the node's main process

  // True if the cause affects the connection between these nodes; negative numbers are unknown nodes.
  [[nodiscard]] bool concerns(int a, int b) const {
    if (kind != CauseKind::partition) return node == a || node == b;
    const auto among = [&](int x) {
      return x >= 0 && (peers.empty() || std::find(peers.begin(), peers.end(), x) != peers.end());
    };
    return (a == node && (b < 0 || among(b))) || (b == node && (a < 0 || among(a)));
  }
};

// Finds spans that end at a given time or later. A tree of maxima makes each search O(log n).
class Lasting {
 public:
  explicit Lasting(const std::vector<std::int64_t>& ends);
  // The index of the first span that has at least the index `from` and ends at `ts` or later; the number of spans if
  // there is none.
  [[nodiscard]] std::size_t next(std::size_t from, std::int64_t ts) const;

 private:
  std::size_t size_ = 0;
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> latest_;  // binary tree in an array: each inner node has the latest end of its leaves
};

// The causes, ordered by time, and a search for the cause that explains a failed call.
class Causes {
 public:
  // `networks`: by node, the node that owns its network, as in NodeMap::networks().
  Causes(std::vector<Cause> causes, std::vector<int> networks);
  // A copy with further causes.
  [[nodiscard]] Causes with(const std::vector<Cause>& more) const;

  [[nodiscard]] const std::vector<Cause>& list() const { return causes_; }
  // The cause that explains a failed call of `node` to `peer_node`; nullptr if there is none. If `peer_known` is false,
  // it is unknown to which node the call was made.
  [[nodiscard]] const Cause* explaining(const Event& event, int node, int peer_node, bool peer_known) const;
  // True if the call failed while its node was down, at most kAfterKill after the node began to end. Such a failure
  // is a consequence of the end.
  [[nodiscard]] bool while_ending(const Event& event, int node) const;

 private:
  std::vector<Cause> causes_;
  std::vector<std::vector<std::size_t>> of_;  // by node: indexes of its causes
  std::vector<int> networks_;                 // by node: the node that owns its network
  Lasting lasting_;
};

}  // namespace rose::evidence
