// Answers requests for the window and the counters, and receives information about nodes (main processes, planned
// stops).
#include <bpf/bpf.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "kernel/lru.h"
#include "kernel/privilege.h"
#include "observe/kernel_tracer.h"

namespace rose::observe {

// Upper bound of the size of a dump's last block, in bytes.
constexpr std::uint64_t kEndOfDump = 256;

int KernelTracer::node_index(const std::string& name) const {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].node == name) return static_cast<int>(i);
  }
  return -1;
}

void KernelTracer::write_node(std::size_t node) {
  const auto key = static_cast<std::uint32_t>(node);
  bpf_map_update_elem(bpf_map__fd(skeleton_->maps.rose_nodes), &key, &nodes_[node], BPF_ANY);
}

void KernelTracer::set_main(const std::string& node, pid_t pid) {
  const int index = node_index(node);
  if (index < 0 || pid <= 0) return;
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(index);
  nodes_[at].main_tgid = static_cast<std::uint32_t>(pid);
  write_node(at);
  if (!targets_[at].cgroups.empty()) return;  // its cgroup already determines the node
  const auto key = static_cast<std::uint32_t>(pid);
  const auto value = static_cast<std::uint32_t>(index);
  const int map = bpf_map__fd(skeleton_->maps.rose_procs);
  bpf_map_update_elem(map, &key, &value, BPF_NOEXIST);
  if (!kernel::process_exists(pid)) bpf_map_delete_elem(map, &key);
}

void KernelTracer::set_planned(const std::string& node, bool planned) {
  const int index = node_index(node);
  if (index < 0) return;
  const std::lock_guard lock(mutex_);
  nodes_[static_cast<std::size_t>(index)].planned = planned ? 1 : 0;
  write_node(static_cast<std::size_t>(index));
}

rose_stats KernelTracer::kernel_stats() const {
  rose_stats sum{};
  std::vector<rose_stats> values(static_cast<std::size_t>(cpus_));
  for (std::uint32_t node = 0; node < targets_.size(); ++node) {
    if (bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.rose_stats), &node, values.data()) != 0) continue;
    for (const auto& value : values) {
      sum.recorded += value.recorded;
      sum.lost += value.lost;
      sum.suppressed += value.suppressed;
      sum.foreign += value.foreign;
    }
  }
  return sum;
}

std::vector<std::uint64_t> KernelTracer::per_cpu_sums(bpf_map* map, std::uint32_t entries) const {
  std::vector<std::uint64_t> sums(entries, 0);
  std::vector<std::uint64_t> values(static_cast<std::size_t>(cpus_));
  for (std::uint32_t key = 0; key < entries; ++key) {
    if (bpf_map_lookup_elem(bpf_map__fd(map), &key, values.data()) != 0) continue;
    for (const auto value : values) sums[key] += value;
  }
  return sums;
}

void KernelTracer::add_ongoing_pauses(trace::Trace& trace, const std::vector<trace::StringId>& nodes) {
  const std::int64_t now = monotonic_ns();
  std::uint32_t steps = 0;
  const int paused = bpf_map__fd(skeleton_->maps.rose_paused);
  std::uint64_t key = 0, next_key = 0;
  for (int error = bpf_map_get_next_key(paused, nullptr, &next_key); error == 0 && steps < 8192;
       error = bpf_map_get_next_key(paused, &key, &next_key), ++steps) {
    key = next_key;
    rose_pause pause{};
    if (bpf_map_lookup_elem(paused, &key, &pause) != 0 || pause.node >= nodes.size() || pause.since_ns == 0) continue;
    const std::int64_t duration = now - static_cast<std::int64_t>(pause.since_ns);
    if (duration < options_.pause_ns) continue;
    trace::Event event;
    event.type = trace::EventType::ps;
    event.state = trace::ProcessState::paused;
    event.ts_ns = now;
    event.node = nodes[pause.node];
    event.pid = event.tid = static_cast<std::int32_t>(pause.tgid);
    event.signal = static_cast<std::uint8_t>(pause.signal);
    event.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>(duration / 1'000'000, INT32_MAX));
    event.flags = trace::kOpen;
    if ((pause.flags & ROSE_MAIN) != 0) event.flags |= trace::kMain;
    if ((pause.flags & ROSE_PLANNED) != 0) event.flags |= trace::kPlanned;
    trace.events.push_back(event);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& wait : waits_.ongoing(now)) {
    if (wait.node >= nodes.size()) continue;
    trace::Event event = describe_wait(wait);
    event.node = nodes[wait.node];
    event.flags |= trace::kOpen;
    trace.events.push_back(event);
  }
}

// The silences and pauses that have not ended, with monotonic timestamps like the window.
trace::Trace KernelTracer::ongoing() {
  trace::Trace trace;
  std::vector<trace::StringId> nodes;
  for (const auto& target : targets_) nodes.push_back(trace.strings.intern(target.node));
  network_.add_open(trace, 0, nodes);
  add_ongoing_pauses(trace, nodes);
  return trace;
}

trace::Meta KernelTracer::meta(std::int64_t offset) {
  trace::Meta meta;
  meta.node = options_.host_node;
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) meta.host = host;
  if (auto boot = read_file("/proc/sys/kernel/random/boot_id"); boot) meta.boot_id = boot->substr(0, 36);
  meta.monotonic_base_ns = monotonic_ns();
  meta.wall_base_ns = meta.monotonic_base_ns + offset;
  meta.window = options_.window;
  meta.memory = options_.memory;
  meta.network_delay_ns = options_.network_delay_ns;
  meta.pause_ns = options_.pause_ns;
  meta.begin_ns = begin_ns_ + offset;  // converted like all times of the dump
  meta.end_ns = meta.wall_base_ns;
  for (const auto& target : targets_) {
    meta.nodes.push_back(target.node);
    for (const auto& address : target.addresses) meta.addresses.push_back(target.node + "=" + address);
    for (const auto& label : target.labels) meta.labels.push_back(target.node + "=" + label);
    for (const auto& label : options_.labels) meta.labels.push_back(target.node + "=" + label);
  }
  meta.handshakes = network_.handshakes(offset);
  meta.clock = clock_steps_.sentences(meta.host.empty() ? meta.node : meta.host, offset);
  const auto sum = stats();
  meta.lost = sum.lost;
  meta.suppressed = sum.suppressed;
  meta.suppressed_calls = suppressed_calls();
  return meta;
}

// Returns the number of events that left the window while it was read.
Result<std::uint64_t> KernelTracer::read_window(
    const std::function<Result<void>(const trace::Meta&, std::int64_t offset)>& begin,
    const std::function<Result<void>(const trace::PackedEvents&)>& take, const DumpRoom& room,
    std::uint64_t* left_out) {
  sample_connections();
  std::shared_ptr<Snapshot> window;
  {
    const std::lock_guard lock(mutex_);
    // Keep this order. If a BPF program reports a count meanwhile, so that the count moves from the table of storms to
    // the ring, it is then read from the ring.
    update_storms(true);
    drain(ring_.produced());
    window = window_->snapshot();
  }
  const std::int64_t offset = wall_offset_ns();
  const trace::Trace now = ongoing();
  trace::Meta head = meta(offset);
  head.pairs_evicted = now.meta.pairs_evicted;
  ROSE_CHECK(begin(head, offset));
  std::optional<trace::PackedEvents> last;
  if (!now.events.empty()) {
    ROSE_TRY(last, trace::pack_events(now.events, now.strings.all()));
  }
  if (room) {
    ROSE_TRY(const std::uint64_t bytes, window->pack());
    const std::uint64_t further = (last ? last->block.size() : 0) + kEndOfDump;
    const std::uint64_t most = room(bytes + further);
    if (most < bytes + further) {
      *left_out = window->shorten(most > further ? most - further : 0);
      if (*left_out > 0 && window->empty())
        return fail_errno(ErrorKind::input, "there is no room for even the newest events", ENOSPC);
    }
  }
  for (;;) {
    ROSE_TRY(const std::optional<trace::PackedEvents> block, window->next());
    if (!block) break;
    ROSE_CHECK(take(*block));
  }
  if (last) ROSE_CHECK(take(*last));
  return window->missed();
}

Result<trace::Trace> KernelTracer::snapshot() {
  trace::Trace trace;
  std::int64_t shift = 0;
  std::string raw;
  ROSE_TRY(const std::uint64_t missed, read_window(
                                           [&](const trace::Meta& meta, std::int64_t offset) -> Result<void> {
                                             trace.meta = meta;
                                             shift = offset;
                                             return {};
                                           },
                                           [&](const trace::PackedEvents& packed) -> Result<void> {
                                             trace::BlockHeader header;
                                             std::size_t strings = 0;
                                             auto fault = trace::open_block(packed.block, header, raw);
                                             if (!fault)
                                               fault = trace::unpack_events(header, raw, shift, trace, strings);
                                             if (fault)
                                               return fail(ErrorKind::bug,
                                                           "a block of the window is not valid: " + *fault);
                                             return {};
                                           }));
  trace.meta.lost += missed;
  trace::sort_by_time(trace);
  return trace;
}

Result<DumpTotals> KernelTracer::write_dump(const trace::DumpWriter::Sink& sink,
                                            const std::function<void(trace::Meta&)>& amend, const DumpRoom& room) {
  DumpTotals totals;
  trace::DumpWriter writer(sink);
  ROSE_TRY(std::uint64_t missed, read_window(
                                     [&](const trace::Meta& meta, std::int64_t offset) {
                                       trace::Meta amended = meta;
                                       if (amend) amend(amended);
                                       totals.lost = amended.lost;
                                       totals.suppressed = amended.suppressed;
                                       return writer.begin(amended, offset);
                                     },
                                     [&](const trace::PackedEvents& packed) {
                                       for (std::size_t i = 0; i < packed.by_type.size(); ++i)
                                         totals.by_type[i] += packed.by_type[i];
                                       return writer.add(packed);
                                     },
                                     room, &totals.left_out));
  missed += totals.left_out;
  ROSE_CHECK(writer.end(missed));
  totals.lost += missed;
  totals.events = writer.events();
  return totals;
}

profile::RunCounts KernelTracer::counts() {
  profile::RunCounts out;
  const std::int64_t now = monotonic_ns();
  out.seconds = static_cast<double>(now - begin_ns_) / 1e9;
  const auto nodes = targets_.size();
  if (options_.count_syscalls) {
    const auto sums = per_cpu_sums(skeleton_->maps.rose_calls, static_cast<std::uint32_t>(nodes * ROSE_SYSCALLS));
    for (std::size_t node = 0; node < nodes; ++node) {
      auto& calls = out.syscalls[targets_[node].node];
      for (int nr = 0; nr < ROSE_SYSCALLS; ++nr) {
        const auto count = sums[node * ROSE_SYSCALLS + static_cast<std::size_t>(nr)];
        if (count != 0) calls[kernel::syscall_name(nr)] = count;
      }
    }
  }
  if (functions_.counting()) out.functions = functions_.rates();
  return out;
}

TracerStats KernelTracer::stats() {
  const auto sum = kernel_stats();
  const std::lock_guard lock(mutex_);
  TracerStats out;
  out.recorded = recorded_;
  out.lost = sum.lost + sum.foreign + unreadable_ + kernel::missed_runs(skeleton_->obj) - missed_before_;
  out.suppressed = sum.suppressed;
  out.stored = window_->size();
  out.memory = kernel_bytes_ + storms_.bytes() + window_->bytes();
  return out;
}

kernel::Capabilities KernelTracer::still_needed() {
  kernel::Capabilities needed;
  // Needed to attach to the sockets of a cgroup that is created again.
  if (!places_.empty() && options_.interfaces.empty()) needed.add({CAP_NET_ADMIN});
  // Needed to attach functions again that were hot.
  if (functions_.size() != 0) needed.add({CAP_PERFMON, CAP_DAC_READ_SEARCH});
  // Since Linux 5.19, BPF requires privileges only for loading and for creating maps. Earlier kernels require them for
  // every command. The trial runs in a thread of its own, because it drops privileges.
  bool readable = false;
  auto trial = start_thread([&] {
    std::vector<rose_stats> values(static_cast<std::size_t>(cpus_));
    const std::uint32_t key = 0;
    kernel::weaken_thread();
    readable = bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.rose_stats), &key, values.data()) == 0;
  });
  if (trial) trial->join();
  if (!readable) needed.add({CAP_BPF});
  return needed;
}

}  // namespace rose::observe
