#include "observe/network_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "bpf/tracer.h"
#include "kernel/attach.h"
#include "observe/decode.h"

namespace rose::observe {
namespace {

std::pair<std::uint16_t, std::uint16_t> ephemeral_ports() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  std::uint16_t low = 32768, high = 60999;
  file >> low >> high;
  return {low, high};
}

bool to_address(const std::string& text, std::array<std::uint8_t, 16>& out) {
  out = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return ::inet_pton(AF_INET, text.c_str(), out.data() + 12) == 1 || ::inet_pton(AF_INET6, text.c_str(), out.data()) == 1;
}

}  // namespace

void NetworkWatch::prepare(const Kernel& kernel, const TracerOptions& options, const std::vector<Target>& targets,
                           Places& places, const std::vector<NodeCgroup>& surrounding) {
  kernel_ = kernel;
  interfaces_ = options.interfaces;
  places_ = &places;
  surrounding_ = surrounding;
  delay_ns_ = std::max<std::int64_t>(options.network_delay_ns, 1'000'000);
  kernel_.settings->delay_ns = static_cast<std::uint64_t>(delay_ns_);
  std::tie(kernel_.settings->ephemeral_low, kernel_.settings->ephemeral_high) = ephemeral_ports();
  for (const auto& target : targets) {
    addresses_.push_back(target.addresses);
    if (!target.addresses.empty()) kernel_.settings->has_addresses = 1;
  }
  pairs_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(options.memory / 4096, 1024, 65536));
  for (bpf_map* map : {kernel_.pairs, kernel_.connections}) bpf_map__set_max_entries(map, pairs_);

  const bool any = !interfaces_.empty() || !places.empty() || !surrounding_.empty();
  bpf_program__set_autoload(kernel_.ingress, any && interfaces_.empty());
  bpf_program__set_autoload(kernel_.tc, !interfaces_.empty());
  bpf_program__set_autoload(kernel_.xdp, !interfaces_.empty());
  bpf_program__set_autoload(kernel_.closed, any);
}

std::uint64_t NetworkWatch::kernel_bytes() const {
  constexpr std::uint64_t kElement = 64;  // what a hash element costs beside its key and value
  return std::uint64_t{pairs_} * (sizeof(rose_pair) + sizeof(rose_pair_state) + kElement) +
         std::uint64_t{pairs_} * (sizeof(rose_connection) + sizeof(rose_connection_state) + kElement);
}

Result<void> NetworkWatch::attach() { return interfaces_.empty() ? attach_cgroups() : attach_interfaces(); }

Result<void> NetworkWatch::attach_interfaces() {
  const int addresses = bpf_map__fd(kernel_.addresses);
  for (std::uint32_t node = 0; node < addresses_.size(); ++node) {
    for (const auto& text : addresses_[node]) {
      std::array<std::uint8_t, 16> key{};
      if (to_address(text, key)) bpf_map_update_elem(addresses, key.data(), &node, BPF_ANY);
    }
  }
  const Fd query(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const auto& name : interfaces_) {
    const auto index = static_cast<int>(::if_nametoindex(name.c_str()));
    if (index == 0) {
      return fail(ErrorKind::usage, fmt::format("there is no network interface '{}'", name), "see 'ip link'");
    }
    ifreq request{};
    std::strncpy(request.ifr_name, name.c_str(), sizeof request.ifr_name - 1);
    if (::ioctl(query.get(), SIOCGIFHWADDR, &request) == 0 && request.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
        request.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK) {
      return fail(ErrorKind::usage, fmt::format("interface '{}' is not an Ethernet one", name),
                  "trace the nodes' sockets instead: leave --interface out");
    }
    auto link = kernel::attach_tcx(kernel_.tc, index, kernel::Way::in);
    if (!link) {
      log::debug("{}; trying XDP", link.error().message);
      link = kernel::attach_xdp(kernel_.xdp, index);
    }
    if (!link) return Unexpected(std::move(link).error().in(fmt::format("interface '{}'", name)));
    links_.push_back(std::move(*link));
  }
  return {};
}

Result<void> NetworkWatch::attach_cgroups() {
  if (places_->empty() && surrounding_.empty()) return {};
  const int attached = bpf_map__fd(kernel_.attached);
  ROSE_CHECK(places_->attach(kernel_.ingress, attached));
  // Here too, the first of several nodes has the packets of a cgroup they share.
  std::set<std::uint64_t> seen;
  for (const auto& [cgroup, node] : surrounding_) {
    if (places_->holds(cgroup.id) || !seen.insert(cgroup.id).second) continue;
    ROSE_TRY(auto link, attach_packets(kernel_.ingress, attached, cgroup, node));
    links_.push_back(std::move(link));
  }
  return {};
}

void NetworkWatch::add_open(trace::Trace& trace, std::int64_t offset, const std::vector<trace::StringId>& nodes) const {
  const std::int64_t now = monotonic_ns();
  const int map = bpf_map__fd(kernel_.pairs);
  rose_pair pair{}, next{};
  // An LRU map may change under the walk; what is met is right, and the walk has an end.
  std::uint32_t steps = 0;
  for (int error = bpf_map_get_next_key(map, nullptr, &next); error == 0 && steps <= pairs_;
       error = bpf_map_get_next_key(map, &pair, &next), ++steps) {
    pair = next;
    rose_pair_state state{};
    if (bpf_map_lookup_elem(map, &pair, &state) != 0 || pair.node >= nodes.size()) continue;
    const std::int64_t gap = now - static_cast<std::int64_t>(state.last_ns);
    if (gap < delay_ns_ || state.packets < ROSE_PACKETS_LEAST) continue;
    if (static_cast<std::uint64_t>(gap) <= state.usual_ns * ROSE_GAP_FACTOR) continue;
    const auto given_up = static_cast<std::int64_t>(state.given_up_ns);
    const bool unanswered = given_up != 0 && now - given_up >= static_cast<std::int64_t>(ROSE_ANSWER_NS);
    if (pair.protocol == 6 && state.open <= 0 && !unanswered) continue;
    Decoded decoded;
    describe_pair(pair, decoded);
    auto& event = decoded.event;
    event.type = trace::EventType::nd;
    event.ts_ns = now + offset;
    event.node = nodes[pair.node];
    event.src = trace.strings.intern(decoded.src);
    event.dst = trace.strings.intern(decoded.dst);
    event.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>(gap / 1'000'000, INT32_MAX));
    event.packets = state.packets;
    event.flags = trace::kOpen;
    trace.events.push_back(event);
  }
}

}  // namespace rose::observe
