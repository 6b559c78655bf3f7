// Events that explain later ones: ends and pauses of processes, and partitions. Private to diagnose.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "diagnose/extract/given.h"

namespace rose::diagnose {

enum class CauseKind { killed, ended_itself, paused, planned, partition };

struct Cause {
  CauseKind kind = CauseKind::killed;
  int node = -1;
  std::vector<int> peers;  // the partitioned peers; empty means all
  std::int64_t start = 0;
  std::int64_t end = 0;       // of its direct effect: the process runs again, or the partition has healed
  std::string words;          // "n1 was killed"
  bool partly = false;        // other processes of the node continued
  std::int64_t gone = 0;      // when it had ended itself: the time at which its deciding process ended, after others
  double plainness = 1;       // how clearly the evidence states it
  bool main_unknown = false;  // of an end: the dump does not show which process is the node's main one

  [[nodiscard]] bool concerns(int a, int b) const {
    if (kind != CauseKind::partition) return node == a || node == b;
    const auto among = [&](int x) {
      return x >= 0 && (peers.empty() || std::find(peers.begin(), peers.end(), x) != peers.end());
    };
    return (a == node && (b < 0 || among(b))) || (b == node && (a < 0 || among(a)));
  }
};

// Finds which of many spans contain a given time, without visiting those that ended before.
class Lasting {
 public:
  explicit Lasting(const std::vector<std::int64_t>& ends);
  // The first span from index `from` on that ends at `ts` or later; the number of spans if there is none.
  [[nodiscard]] std::size_t next(std::size_t from, std::int64_t ts) const;

 private:
  std::size_t size_ = 0;
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> latest_;  // a tree: each inner node holds the latest end below it
};

// Possible causes, by time. Finds the one that may have caused a failed call.
class Causes {
 public:
  // `networks`: for each node, the node whose network it uses.
  Causes(std::vector<Cause> causes, std::vector<int> networks);
  // These and more.
  [[nodiscard]] Causes with(const std::vector<Cause>& more) const;

  [[nodiscard]] const std::vector<Cause>& list() const { return causes_; }
  // The cause of a failed call of `node`, to another node or to an unknown peer; nullptr if there is none.
  [[nodiscard]] const Cause* explaining(const Event& event, int node, int peer_node, bool peer_known) const;
  // Did it fail while its node was ending?
  [[nodiscard]] bool while_ending(const Event& event, int node) const;

 private:
  std::vector<Cause> causes_;
  std::vector<std::vector<std::size_t>> of_;  // by node
  std::vector<int> networks_;                 // by node
  Lasting lasting_;
};

}  // namespace rose::diagnose
