// What nodes say to each other, as the kernel's program tells it (bpf/tracer/spoken.h): kept, bounded. One for the
// tracer, whose reader thread calls it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "bpf/tracer.h"
#include "observe/tracer.h"

namespace rose::observe {

class SpokenWatch {
 public:
  void prepare(std::size_t nodes) { left_out_.assign(nodes, false); }
  // The nodes' addresses, and where one has none of its own this host's, into a hash by address.
  [[nodiscard]] static Result<void> fill(int hearers_map, const std::vector<Target>& targets);
  // False: it makes no sense.
  bool take(const rose_spoken& spoken);
  // `gates_map`: an array of rose_spoken_gate by node.
  [[nodiscard]] SeenMessages seen(int gates_map) const;

 private:
  std::vector<SeenMessage> all_;
  std::vector<bool> left_out_;  // by node: more than are kept
};

}  // namespace rose::observe
