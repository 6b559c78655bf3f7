#include "observe/network_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "bpf/tracer.h"
#include "kernel/attach.h"
#include "kernel/lru.h"
#include "observe/decode.h"
#include "observe/iterate.h"
#include "trace/clock.h"

namespace rose::observe {
namespace {

std::pair<std::uint16_t, std::uint16_t> ephemeral_ports() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  std::uint16_t low = 32768, high = 60999;
  file >> low >> high;
  return {low, high};
}

bool lies_in(const Cgroup& inner, const Cgroup& outer) {
  return inner.name.starts_with(outer.name) &&
         (outer.name.ends_with('/') || inner.name.size() == outer.name.size() || inner.name[outer.name.size()] == '/');
}

// Visits the elements of a hash map in batches. Elements that are added or removed meanwhile may or may not be visited.
template <typename Key, typename Value, typename See>
void for_each(const bpf_map* map, const See& see) {
  constexpr std::uint32_t kBatch = 1024;
  std::vector<Key> keys(kBatch);
  std::vector<Value> values(kBatch);
  std::uint32_t position = 0;
  // Iterating over an LRU map that changes all the time might never end, so limit the number of elements.
  std::uint64_t left = std::uint64_t{bpf_map__max_entries(map)} * 2;
  for (bool first = true;; first = false) {
    std::uint32_t count = kBatch;
    const int error = bpf_map_lookup_batch(bpf_map__fd(map), first ? nullptr : &position, &position, keys.data(),
                                           values.data(), &count, nullptr);
    if (error != 0 && errno != ENOENT) {
      log::debug("cannot read {}: {}", bpf_map__name(map), std::strerror(errno));
      return;
    }
    for (std::uint32_t i = 0; i < count; ++i) see(keys[i], values[i]);
    if (error != 0 || left < count) return;
    left -= count;
  }
}

}  // namespace

void NetworkWatch::prepare(const Kernel& kernel, const TracerOptions& options, const std::vector<Target>& targets,
                           const TracedCgroups& places, const std::vector<NodeCgroup>& surrounding) {
  kernel_ = kernel;
  interfaces_ = options.interfaces;
  delay_ns_ = std::max<std::int64_t>(options.network_delay_ns, 1'000'000);
  kernel_.settings->delay_ns = static_cast<std::uint64_t>(delay_ns_);
  std::tie(kernel_.settings->ephemeral_low, kernel_.settings->ephemeral_high) = ephemeral_ports();
  timespec tick{};
  ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  kernel_.settings->tick_ns = static_cast<std::uint64_t>(tick.tv_nsec);
  for (const auto& target : targets) {
    addresses_.push_back(target.addresses);
    own_network_.push_back(target.own_network);
    if (!target.addresses.empty()) kernel_.settings->has_addresses = 1;
  }
  pairs_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(options.memory / 2560, 1024, 65536));
  for (bpf_map* map : {kernel_.pairs, kernel_.fresh, kernel_.connections})
    bpf_map__set_max_entries(map, kernel::lru_entries(pairs_));
  bpf_map__set_max_entries(kernel_.over, kernel::lru_entries(pairs_ / 4));
  bpf_map__set_max_entries(kernel_.handshakes, kernel::lru_entries(pairs_ / 32));

  for (const auto& one : places.cgroups()) plan(one, false);
  for (const auto& one : surrounding) plan(one, true);
  by_socket_ = interfaces_.empty() && !surrounding.empty();
  found_ = by_socket_ ? pairs_ / 4 : 1;
  bpf_map__set_max_entries(kernel_.found, kernel::lru_entries(found_));

  const bool any = !interfaces_.empty() || !counted_.empty();
  // On whole interfaces, packets need not belong to sockets of this host, so sockets are not sampled there.
  by_iterator_ = interfaces_.empty() && any && kernel::iterates_files();
  kernel_.settings->by_iterator = by_iterator_ ? 1 : 0;
  bpf_program__set_autoload(kernel_.tcp, by_iterator_);
  silences_ = TcpSilences({.delay_ns = delay_ns_,
                           .tick_ns = tick.tv_nsec,
                           .ephemeral_low = kernel_.settings->ephemeral_low,
                           .ephemeral_high = kernel_.settings->ephemeral_high,
                           .most_pairs = pairs_});
  bpf_program__set_autoload(kernel_.ingress, any && interfaces_.empty());
  bpf_program__set_autoload(kernel_.tc, !interfaces_.empty());
  // Omit this program if the kernel cannot load it, because the kernel would then load no program of the object.
  by_xdp_ = !interfaces_.empty() && kernel::xdp_reads_packets();
  bpf_program__set_autoload(kernel_.xdp, by_xdp_);
  bpf_program__set_autoload(kernel_.closed, any);
  bpf_program__set_autoload(kernel_.resent, any && !by_iterator_);
  bpf_program__set_autoload(kernel_.socket, by_socket_);
  bpf_program__set_autoload(kernel_.socket_scan, by_socket_);
}

// A program on a cgroup also sees the packets of cgroups below it. To count each packet once, programs are attached
// only to outermost cgroups and determine the node by the creator of the socket or the deepest cgroup.
void NetworkWatch::plan(const NodeCgroup& one, bool processes) {
  const std::uint64_t own = processes ? ROSE_BY_SOCKET : std::uint64_t{one.node} + 1;
  const std::uint64_t within = processes ? ROSE_BY_SOCKET : ROSE_BY_LEVEL;
  for (auto& counted : counted_) {
    if (counted.cgroup.name == one.cgroup.name) {
      // If two nodes name the same cgroup, it belongs to the first.
      if (processes || (counted.value & ROSE_ATTACHED_NODE) == 0) counted.value |= own;
      return;
    }
    if (lies_in(one.cgroup, counted.cgroup)) {
      counted.value |= within;
      return;
    }
  }
  CountedCgroup fresh;
  fresh.cgroup = one.cgroup;
  fresh.value = own;
  std::erase_if(counted_, [&](const CountedCgroup& counted) {
    if (!lies_in(counted.cgroup, one.cgroup)) return false;
    if ((counted.value & (ROSE_ATTACHED_NODE | ROSE_BY_LEVEL)) != 0) fresh.value |= ROSE_BY_LEVEL;
    fresh.value |= counted.value & ROSE_BY_SOCKET;
    return true;
  });
  counted_.push_back(std::move(fresh));
}

std::uint64_t NetworkWatch::kernel_bytes() const {
  constexpr std::uint64_t kElement = 64;  // bytes of a hash element in addition to key and value
  const std::uint64_t pairs = kernel::lru_entries(pairs_);
  return pairs * 2 * (sizeof(rose_pair) + sizeof(rose_pair_state) + kElement) +
         pairs * (sizeof(rose_connection) + sizeof(rose_connection_state) + kElement) +
         std::uint64_t{kernel::lru_entries(pairs_ / 4)} * (sizeof(rose_connection) + 8 + kElement) +
         std::uint64_t{kernel::lru_entries(pairs_ / 32)} * (sizeof(rose_hosts) + sizeof(rose_handshakes) + kElement) +
         std::uint64_t{kernel::lru_entries(found_)} * (sizeof(std::uint32_t) + sizeof(rose_found_socket) + kElement);
}

Result<void> NetworkWatch::attach(const rose_network_counts* counts) {
  counts_ = counts;
  if (by_iterator_) {
    connections_link_ = bpf_program__attach_iter(kernel_.tcp, nullptr);
    if (connections_link_ == nullptr) return kernel::bpf_failure("cannot read the nodes' connections", errno);
  }
  return interfaces_.empty() ? attach_cgroups() : attach_interfaces();
}

Result<void> NetworkWatch::attach_interfaces() {
  const int addresses = bpf_map__fd(kernel_.addresses);
  for (std::uint32_t node = 0; node < addresses_.size(); ++node) {
    for (const auto& text : addresses_[node]) {
      if (const auto address = parse_address(text))
        bpf_map_update_elem(addresses, address->bytes.data(), &node, BPF_ANY);
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
                  "trace the nodes' sockets instead: omit --interface");
    }
    auto link = kernel::attach_tcx(kernel_.tc, index, kernel::Way::in);
    if (!link && !by_xdp_)
      return fail(ErrorKind::environment,
                  fmt::format("interface '{}' can be watched neither by a TCX link nor by an XDP program: {}", name,
                              link.error().message),
                  "use Linux 5.18 or newer, or trace the nodes' sockets: omit --interface");
    if (!link) {
      log::debug("{}; trying XDP", link.error().message);
      link = kernel::attach_xdp(kernel_.xdp, index);
    }
    if (!link) return Unexpected(std::move(link).error().in(fmt::format("interface '{}'", name)));
    links_.push_back(std::move(*link));
  }
  return {};
}

Result<void> NetworkWatch::attach_sockets(CountedCgroup& counted) {
  counted.cgroup.id = cgroup_id(counted.cgroup.path);
  if (counted.cgroup.id == 0 || (counted.value & ROSE_BY_SOCKET) == 0) return {};
  auto link = kernel::attach_cgroup(kernel_.socket, counted.cgroup.path);
  if (!link) return Unexpected(std::move(link).error());
  counted.socket = std::move(*link);
  return {};
}

Result<void> NetworkWatch::attach_packets(CountedCgroup& counted) {
  if (counted.cgroup.id == 0) return {};
  auto link = kernel::attach_cgroup(kernel_.ingress, counted.cgroup.path);
  if (!link) return Unexpected(std::move(link).error());
  struct {
    std::uint64_t cgroup;
    std::uint32_t type;
    std::uint32_t pad;
  } const key{counted.cgroup.id, BPF_CGROUP_INET_INGRESS, 0};
  if (bpf_map_update_elem(bpf_map__fd(kernel_.attached), &key, &counted.value, BPF_ANY) != 0) {
    return kernel::bpf_failure("cannot set the packet program's node", errno);
  }
  counted.packets = std::move(*link);
  return {};
}

Result<void> NetworkWatch::attach_cgroups() {
  const std::lock_guard lock(mutex_);
  // If a cgroup disappears meanwhile, that is not an error: the kernel reports when it is created again.
  const auto same = [](const CountedCgroup& counted) { return cgroup_id(counted.cgroup.path) == counted.cgroup.id; };
  for (auto& counted : counted_) {
    if (auto done = attach_sockets(counted); !done && same(counted)) return done;
  }
  // From now on, programs mark new sockets. Sockets in a listener's queue are not in a descriptor table yet, so this
  // search does not find them; tick() repeats it.
  if (by_socket_) find_sockets();
  attached_ns_ = monotonic_ns();
  for (auto& counted : counted_) {
    if (auto done = attach_packets(counted); !done && same(counted)) return done;
  }
  return {};
}

void NetworkWatch::follow() {
  const std::lock_guard lock(mutex_);
  if (attached_ns_ == 0) return;
  for (auto& counted : counted_) {
    const std::uint64_t id = cgroup_id(counted.cgroup.path);
    if (id == counted.cgroup.id && (id == 0 || counted.packets)) continue;
    counted.socket.reset();
    counted.packets.reset();
    auto done = attach_sockets(counted);
    if (done) done = attach_packets(counted);
    if (counted.socket) {  // new sockets are marked from now on; tick() searches for older ones again
      attached_ns_ = monotonic_ns();
      scans_ = 0;
    }
    if (done || counted.warned || cgroup_id(counted.cgroup.path) != counted.cgroup.id) continue;
    counted.warned = true;
    log::warning("network delays of {} are no longer traced: {}", counted.cgroup.name, done.error().message);
  }
}

NetworkWatch::~NetworkWatch() { bpf_link__destroy(connections_link_); }

std::vector<rose_closing> NetworkWatch::closing() const {
  std::vector<rose_closing> found;
  const int map = bpf_map__fd(kernel_.closing);
  std::uint64_t key = 0, next = 0;
  std::uint32_t steps = 0;
  for (int error = bpf_map_get_next_key(map, nullptr, &next);
       error == 0 && steps < bpf_map__max_entries(kernel_.closing);
       error = bpf_map_get_next_key(map, &key, &next), ++steps) {
    key = next;
    rose_closing one{};
    if (bpf_map_lookup_elem(map, &key, &one) == 0) found.push_back(one);
  }
  return found;
}

bool NetworkWatch::describe(const TcpSilences::Silence& silence, Decoded& out) const {
  const auto ms = [](std::int64_t ns) {
    return ns < 0 ? -1 : static_cast<std::int32_t>(std::min<std::int64_t>(ns / 1'000'000, INT32_MAX));
  };
  out = {};
  describe_pair(silence.pair, out);
  if (silence.pair.node >= own_network_.size() || (own_network_[silence.pair.node] && out.src == out.dst)) return false;
  out.node = silence.pair.node;
  auto& event = out.event;
  event.type = trace::EventType::nd;
  event.ts_ns = silence.end_ns;
  event.duration_ms = ms(silence.end_ns - silence.begin_ns);
  event.packets = static_cast<std::uint32_t>(std::min<std::uint64_t>(silence.packets, UINT32_MAX));
  event.flags = silence.outstanding ? trace::kOutstanding : trace::kIdle;
  event.begin_within_ms = ms(silence.begin_within_ns);
  event.end_within_ms = ms(silence.end_within_ns);
  event.usual_ms = ms(silence.usual_ns);
  return true;
}

std::vector<Decoded> NetworkWatch::sample() {
  // Sample a few times per second, but use at most 1/kShare of one processor, unless a single sample takes so long that
  // kLatest limits the pause after it. Time spent waiting for a processor is not counted.
  constexpr std::int64_t kLeast = 100'000'000, kMost = 250'000'000, kShare = 200, kLatest = 2'000'000'000;
  const auto used_ns = [] {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * std::int64_t{1'000'000'000} + used.tv_nsec;
  };
  std::vector<Decoded> out;
  if (!by_iterator_) return out;
  const std::lock_guard lock(sample_mutex_);
  const std::int64_t begin = used_ns();
  const auto connections =
      connections_link_ == nullptr ? std::nullopt : iterate<rose_tcp>(bpf_link__fd(connections_link_));
  if (connections) {
    for (const auto& silence : silences_.sample(*connections, closing(), monotonic_ns()))
      if (Decoded decoded; describe(silence, decoded)) out.push_back(std::move(decoded));
  }
  const std::int64_t rest = std::min(kShare * (used_ns() - begin), kLatest);
  due_ns_ = monotonic_ns() + std::max(std::clamp(delay_ns_ / 4, kLeast, kMost), rest);
  return out;
}

void NetworkWatch::detach() {
  const std::lock_guard lock(mutex_);
  attached_ns_ = 0;
  for (auto& counted : counted_) {
    counted.socket.reset();
    counted.packets.reset();
  }
  links_.clear();
}

void NetworkWatch::tick() {
  constexpr std::int64_t kAgain[] = {1'000'000'000, 10'000'000'000};
  if (!by_socket_ || attached_ns_ == 0 || scans_ == std::size(kAgain)) return;
  if (monotonic_ns() - attached_ns_ < kAgain[scans_]) return;
  ++scans_;
  find_sockets();
  log::debug("searched for sockets again ({} of {})", scans_, std::size(kAgain));
}

// Reading from the iterator makes the BPF program visit every open file.
void NetworkWatch::find_sockets() const {
  bpf_link* link = bpf_program__attach_iter(kernel_.socket_scan, nullptr);
  const Fd reader(link == nullptr ? -1 : bpf_iter_create(bpf_link__fd(link)));
  ssize_t got = reader ? 1 : -1;
  char nothing[64];
  while (got > 0 || (got < 0 && reader && (errno == EAGAIN || errno == EINTR))) {
    got = ::read(reader.get(), nothing, sizeof nothing);
  }
  if (got < 0) {
    log::warning("connections that were already open are not watched: cannot search for them ({})",
                 std::strerror(errno));
  }
  bpf_link__destroy(link);
}

void NetworkWatch::add_open(trace::Trace& trace, std::int64_t offset, const std::vector<trace::StringId>& nodes) const {
  const std::int64_t now = monotonic_ns();
  std::uint64_t present = 0;
  Decoded decoded;
  for_each<rose_pair, rose_pair_state>(kernel_.pairs, [&](const rose_pair& pair, const rose_pair_state& state) {
    ++present;
    if (pair.node >= nodes.size() || static_cast<std::int64_t>(state.last_ns) > now) return;
    const std::uint64_t gap = static_cast<std::uint64_t>(now) - state.last_ns;
    const std::uint64_t reported_ns =
        rose_reported_ns(&state, pair.protocol == IPPROTO_TCP, static_cast<std::uint64_t>(now), gap,
                         static_cast<std::uint64_t>(delay_ns_));
    if (reported_ns == 0) return;
    decoded.event = {};
    describe_pair(pair, decoded);
    if (own_network_[pair.node] && decoded.src == decoded.dst) return;
    auto& event = decoded.event;
    event.type = trace::EventType::nd;
    event.ts_ns = now + offset;
    event.node = nodes[pair.node];
    event.src = trace.strings.intern(decoded.src);
    event.dst = trace.strings.intern(decoded.dst);
    event.duration_ms = static_cast<std::int32_t>(std::min<std::uint64_t>(reported_ns / 1'000'000, INT32_MAX));
    event.packets = state.packets;
    event.flags = trace::kOpen;
    trace.events.push_back(event);
  });
  const std::lock_guard lock(sample_mutex_);
  for (const auto& silence : silences_.ongoing()) {
    if (!describe(silence, decoded)) continue;
    auto event = decoded.event;
    event.ts_ns += offset;
    event.node = nodes[silence.pair.node];
    event.src = trace.strings.intern(decoded.src);
    event.dst = trace.strings.intern(decoded.dst);
    event.flags |= trace::kOpen;
    trace.events.push_back(event);
  }
  if (counts_ != nullptr && counts_->pairs > present) trace.meta.pairs_evicted = counts_->pairs - present;
}

std::vector<std::string> NetworkWatch::handshakes(std::int64_t offset) const {
  std::vector<std::string> lines;
  for_each<rose_hosts, rose_handshakes>(kernel_.handshakes, [&](const rose_hosts& hosts, const rose_handshakes& seen) {
    for (const auto& slot : seen.slots) {
      if (slot.first_ns == 0) continue;
      const std::string remote = address_of(hosts.remote).with_port(slot.remote_port);
      const std::string local = address_of(hosts.local).with_port(slot.local_port);
      const auto first = static_cast<std::int64_t>(slot.first_ns) + offset;
      trace::Handshake handshake;
      handshake.isn = slot.isn;
      handshake.client = slot.client != 0 ? local : remote;
      handshake.server = slot.client != 0 ? remote : local;
      if (slot.client != 0) {
        handshake.synack_ns = first;
      } else {
        handshake.syn_ns = first;
        handshake.ack_ns = static_cast<std::int64_t>(slot.last_ns) + offset;
      }
      lines.push_back(trace::to_text(handshake));
    }
  });
  return lines;
}

}  // namespace rose::observe
