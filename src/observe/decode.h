// Decodes records from the ring buffer. Pure; records are checked and never trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/address.h"
#include "bpf/tracer.h"
#include "trace/event.h"

namespace rose::observe {

// A decoded record with its texts. Reused for all records, so that decoding rarely allocates.
struct Decoded {
  trace::Event event;  // node and string ids are 0; ts_ns is monotonic
  std::uint32_t node = 0;
  std::uint32_t function = 0;  // AF: index; ROSE_NAMED: the name is in `path`
  std::uint32_t link = 0;      // AF: number of the link that reported it
  std::string path, path2, peer, src, dst;
  std::string by;  // PS: who sent the signal
  bool has_path = false, has_path2 = false, has_peer = false, has_by = false;
  // For an event of a storm: its key, and the time of the first event that this one represents. If `counted`, the event
  // is only a count, and its other details are those of an earlier event with this key.
  std::uint64_t storm = 0;
  std::int64_t first_ns = 0;
  bool counted = false;

  // Marks the event as representing `count` events from `since_ns` to its own time.
  void represent(std::uint32_t count, std::int64_t since_ns);
};

// Returns false if the record is malformed; it is then counted as lost.
[[nodiscard]] bool decode(std::span<const std::byte> record, Decoded& out);

[[nodiscard]] Address address_of(const std::uint8_t (&bytes)[16]);
// Sets source, destination, ports and protocol of an ND event.
void describe_pair(const rose_pair& pair, Decoded& out);

}  // namespace rose::observe
