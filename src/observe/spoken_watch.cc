#include "observe/spoken_watch.h"

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

Result<void> SpokenWatch::fill(int hearers_map, const std::vector<Target>& targets) {
  const auto add = [&](std::string_view text) -> Result<void> {
    const auto address = parse_address(text);
    const std::uint8_t one = 1;
    if (address && bpf_map_update_elem(hearers_map, address->bytes.data(), &one, BPF_ANY) != 0)
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

bool SpokenWatch::take(const rose_spoken& spoken) {
  if (spoken.head.node >= left_out_.size() || spoken.length > ROSE_SPOKEN_BYTES ||
      (spoken.protocol != kTcp && spoken.protocol != kUdp))
    return false;
  if (all_.size() >= kMostMessages) {
    left_out_[spoken.head.node] = true;
    return true;
  }
  SeenMessage seen;
  seen.node = spoken.head.node;
  seen.pid = static_cast<std::int32_t>(spoken.head.tgid);
  seen.tid = static_cast<std::int32_t>(spoken.head.tid);
  seen.ts_ns = static_cast<std::int64_t>(spoken.head.ts_ns);
  seen.taken = spoken.taken != 0;
  seen.tcp = spoken.protocol == kTcp;
  seen.own = address_of(spoken.conn.local).text();
  seen.peer = address_of(spoken.conn.remote).text();
  seen.own_port = spoken.conn.local_port;
  seen.peer_port = spoken.conn.remote_port;
  seen.end = spoken.end;
  seen.bytes = spoken.bytes;
  seen.data.assign(reinterpret_cast<const char*>(spoken.data), spoken.length);
  all_.push_back(std::move(seen));
  return true;
}

SeenMessages SpokenWatch::seen(int gates_map) const {
  SeenMessages out;
  out.messages = all_;
  std::stable_sort(out.messages.begin(), out.messages.end(),
                   [](const SeenMessage& a, const SeenMessage& b) { return a.ts_ns < b.ts_ns; });
  out.left_out = left_out_;
  for (std::uint32_t node = 0; node < left_out_.size(); ++node) {
    rose_spoken_gate gate{};
    if (bpf_map_lookup_elem(gates_map, &node, &gate) == 0 && gate.left_out > 0) out.left_out[node] = true;
  }
  return out;
}

}  // namespace rose::observe
