// Stores, up to a limit, the messages between nodes that BPF programs record (bpf/tracer/transfers.h). Owned by the
// tracer and called by its reader thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "bpf/tracer.h"
#include "observe/tracer.h"

namespace rose::observe {

class MessageWatch {
 public:
  void prepare(std::size_t nodes) { left_out_.assign(nodes, false); }
  // Fills a hash map whose keys are the nodes' addresses. For a node without addresses, adds the loopback addresses.
  [[nodiscard]] static Result<void> fill(int receivers_map, const std::vector<Target>& targets);
  // Returns false if the record is malformed.
  bool take(const rose_transfer& message);
  // The messages so far. `gates_map`: an array of rose_transfer_gate by node, which counts messages that were left out.
  [[nodiscard]] SeenMessages seen(int gates_map) const;

 private:
  std::vector<SeenMessage> all_;
  std::vector<bool> left_out_;  // by node: messages were dropped
};

}  // namespace rose::observe
