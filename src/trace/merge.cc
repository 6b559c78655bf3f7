#include "trace/merge.h"

#include <algorithm>
#include <utility>

namespace rose::trace {
namespace {

// The earlier of two times of which 0 is "unknown".
std::int64_t earliest(std::int64_t a, std::int64_t b) {
  if (a == 0) return b;
  if (b == 0) return a;
  return std::min(a, b);
}

void unite(std::vector<std::string>& into, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::find(into.begin(), into.end(), name) == into.end()) into.push_back(name);
  }
}

void combine(Meta& into, const Trace& trace) {
  const Meta& meta = trace.meta;
  if (into.node != meta.node) into.node.clear();
  if (into.host != meta.host) into.host.clear();
  if (into.boot_id != meta.boot_id || into.wall_base_ns != meta.wall_base_ns ||
      into.monotonic_base_ns != meta.monotonic_base_ns) {
    // Pairs of clock readings mean something only on the boot they were taken on.
    if (into.boot_id != meta.boot_id || into.boot_id.empty()) {
      into.wall_base_ns = 0;
      into.monotonic_base_ns = 0;
    }
    if (into.boot_id != meta.boot_id) into.boot_id.clear();
  }
  into.window += meta.window;
  into.memory += meta.memory;
  into.lost += meta.lost;
  into.suppressed += meta.suppressed;
  for (const SuppressedCall& call : meta.suppressed_calls) {
    const auto known = std::find_if(into.suppressed_calls.begin(), into.suppressed_calls.end(), [&](const SuppressedCall& other) {
      return other.syscall == call.syscall && other.err == call.err;
    });
    if (known == into.suppressed_calls.end())
      into.suppressed_calls.push_back(call);
    else
      known->count += call.count;
  }
  std::stable_sort(into.suppressed_calls.begin(), into.suppressed_calls.end(),
                   [](const SuppressedCall& a, const SuppressedCall& b) { return a.count > b.count; });
  // The coarser threshold is the one that holds for the whole.
  into.network_delay_ns = std::max(into.network_delay_ns, meta.network_delay_ns);
  into.pause_ns = std::max(into.pause_ns, meta.pause_ns);
  into.workload_ts = earliest(into.workload_ts, meta.workload_ts);
  into.begin_ns = earliest(into.begin_ns, meta.begin_ns);
  into.end_ns = std::max(into.end_ns, meta.end_ns);
  if (into.trigger.empty()) {
    into.trigger = meta.trigger;
  } else if (!meta.trigger.empty() && into.trigger != meta.trigger && into.trigger.size() < 1000) {
    into.trigger += "; " + meta.trigger;
  }
  unite(into.nodes, node_names(trace));
  unite(into.addresses, meta.addresses);
}

}  // namespace

Trace merge(const std::vector<Trace>& traces) {
  Trace merged;
  if (traces.empty()) return merged;
  merged.meta = traces.front().meta;
  merged.meta.nodes = node_names(traces.front());
  std::size_t total = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    total += traces[i].events.size();
    if (i > 0) combine(merged.meta, traces[i]);
  }
  merged.events.reserve(total);
  for (const Trace& trace : traces) {
    std::vector<StringId> ids(trace.strings.size(), 0);
    const auto move_id = [&](StringId& id) {
      if (id >= ids.size()) id = 0;
      if (id == 0) return;
      if (ids[id] == 0) ids[id] = merged.strings.intern(trace.strings[id]);
      id = ids[id];
    };
    // Once merged, nothing else would say whose an event without a node was.
    const StringId own = trace.meta.node.empty() ? 0 : merged.strings.intern(trace.meta.node);
    for (Event event : trace.events) {
      if (event.node == 0) {
        event.node = own;
      } else {
        move_id(event.node);
      }
      for (StringId* id : {&event.path, &event.path2, &event.peer, &event.function, &event.src, &event.dst})
        move_id(*id);
      merged.events.push_back(event);
    }
  }
  sort_by_time(merged);
  return merged;
}

}  // namespace rose::trace
