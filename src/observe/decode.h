// Records from the ring, as bytes, to what they say. Pure: nothing is trusted to be well-formed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "bpf/tracer.h"
#include "trace/event.h"

namespace rose::observe {

// A record with its texts; reused from record to record, so that decoding rarely allocates.
struct Decoded {
  trace::Event event;  // node and the string ids stay 0; ts_ns is monotonic
  std::uint32_t node = 0;
  std::uint32_t function = 0;  // AF
  std::string path, path2, peer, src, dst;
  bool has_path = false, has_path2 = false, has_peer = false;
};

// False when the record makes no sense (it is counted as lost then).
[[nodiscard]] bool decode(std::span<const std::byte> record, Decoded& out);

// "10.0.0.1", "fe80::1"; IPv4 in IPv6 (::ffff:a.b.c.d) as IPv4.
[[nodiscard]] std::string address_text(const std::uint8_t (&bytes)[16]);
// Fills src, dst, ports and protocol of an ND event.
void describe_pair(const rose_pair& pair, Decoded& out);

}  // namespace rose::observe
