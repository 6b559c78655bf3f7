#include "observe/message_watch.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>

#include "base/address.h"
#include "kernel/attach.h"
#include "observe/decode.h"

namespace rose::observe {
namespace {

constexpr std::uint8_t kTcp = 6, kUdp = 17;

}  // namespace

Result<void> MessageWatch::fill(int receivers_map, const std::vector<Target>& targets) {
  const auto add = [&](std::string_view text) -> Result<void> {
    const auto address = parse_address(text);
    const std::uint8_t one = 1;
    if (address && bpf_map_update_elem(receivers_map, address->bytes.data(), &one, BPF_ANY) != 0)
      return kernel::bpf_failure("cannot set the nodes' addresses in the kernel", errno);
    return {};
  };
  for (const Target& target : targets) {
    for (const std::string& text : target.addresses) ROSE_CHECK(add(text));
    if (!target.addresses.empty()) continue;
    ROSE_CHECK(add("127.0.0.1"));
    ROSE_CHECK(add("::1"));
  }
  return {};
}

bool MessageWatch::take(const rose_transfer& message) {
  if (message.head.node >= left_out_.size() || message.length > ROSE_TRANSFER_BYTES ||
      (message.protocol != kTcp && message.protocol != kUdp))
    return false;
  if (all_.size() >= kMostMessages) {
    left_out_[message.head.node] = true;
    return true;
  }
  SeenMessage seen;
  seen.node = message.head.node;
  seen.pid = static_cast<std::int32_t>(message.head.tgid);
  seen.tid = static_cast<std::int32_t>(message.head.tid);
  seen.ts_ns = static_cast<std::int64_t>(message.head.ts_ns);
  seen.taken = message.taken != 0;
  seen.tcp = message.protocol == kTcp;
  seen.own = address_of(message.conn.local).text();
  seen.peer = address_of(message.conn.remote).text();
  seen.own_port = message.conn.local_port;
  seen.peer_port = message.conn.remote_port;
  seen.end = message.end;
  seen.bytes = message.bytes;
  seen.data.assign(reinterpret_cast<const char*>(message.data), message.length);
  all_.push_back(std::move(seen));
  return true;
}

SeenMessages MessageWatch::seen(int gates_map) const {
  SeenMessages out;
  out.messages = all_;
  std::stable_sort(out.messages.begin(), out.messages.end(),
                   [](const SeenMessage& a, const SeenMessage& b) { return a.ts_ns < b.ts_ns; });
  out.left_out = left_out_;
  for (std::uint32_t node = 0; node < left_out_.size(); ++node) {
    rose_transfer_gate gate{};
    if (bpf_map_lookup_elem(gates_map, &node, &gate) == 0 && gate.left_out > 0) out.left_out[node] = true;
  }
  return out;
}

}  // namespace rose::observe
