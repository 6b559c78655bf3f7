// Records from the ring, as bytes, to what they say. Pure: nothing is trusted to be well-formed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/address.h"
#include "bpf/tracer.h"
#include "trace/event.h"

namespace rose::observe {

// A record with its texts; reused from record to record, so that decoding rarely allocates.
struct Decoded {
  trace::Event event;  // node and the string ids stay 0; ts_ns is monotonic
  std::uint32_t node = 0;
  std::uint32_t function = 0;  // AF; ROSE_NAMED: `path` has its name
  std::uint32_t link = 0;      // AF: the number of the link that told it
  std::string path, path2, peer, src, dst;
  bool has_path = false, has_path2 = false, has_peer = false;
  // Of a storm: its key, and the first event that this one stands for. `counted`: the rest is known by the key alone.
  std::uint64_t storm = 0;
  std::int64_t first_ns = 0;
  bool counted = false;

  // It stands for `count` events from then to its own time.
  void stand_for(std::uint32_t count, std::int64_t since_ns);
};

// False when the record makes no sense (it is counted as lost then).
[[nodiscard]] bool decode(std::span<const std::byte> record, Decoded& out);

[[nodiscard]] Address address_of(const std::uint8_t (&bytes)[16]);
// Fills src, dst, ports and protocol of an ND event.
void describe_pair(const rose_pair& pair, Decoded& out);

}  // namespace rose::observe
