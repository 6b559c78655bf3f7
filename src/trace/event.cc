#include "trace/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/result.h"
#include "kernel/syscalls.h"
#include "trace/limits.h"

namespace rose::trace {

StringTable::StringTable() { strings_.emplace_back(); }

// The keys of ids_ point into strings_, so a copy needs keys of its own.
StringTable::StringTable(const StringTable& other) : strings_(other.strings_) {
  ids_.reserve(strings_.size());
  for (std::size_t id = 1; id < strings_.size(); ++id)
    ids_.emplace(strings_[id], static_cast<StringId>(id));
}

StringTable& StringTable::operator=(const StringTable& other) {
  if (this != &other) *this = StringTable(other);
  return *this;
}

StringId StringTable::intern(std::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  if (strings_.empty()) strings_.emplace_back();  // moved from, and used again
  const auto id = static_cast<StringId>(strings_.size());
  ids_.emplace(strings_.emplace_back(text), id);
  return id;
}

std::string_view StringTable::operator[](StringId id) const {
  return id < strings_.size() ? std::string_view(strings_[id]) : std::string_view();
}

StringId StringTable::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? 0 : found->second;
}

void sort_by_time(Trace& trace) {
  const auto earlier = [](const Event& a, const Event& b) { return a.ts_ns < b.ts_ns; };
  // Mostly sorted already, and then nothing need be moved.
  if (!std::is_sorted(trace.events.begin(), trace.events.end(), earlier))
    std::stable_sort(trace.events.begin(), trace.events.end(), earlier);
}

std::vector<std::string> node_names(const Trace& trace) {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && seen.insert(name).second) names.emplace_back(name);
  };
  for (const std::string& name : trace.meta.nodes) add(name);
  std::vector<bool> known(trace.strings.size());
  bool nameless = false;
  for (const Event& event : trace.events) {
    if (event.node == 0) nameless = true;
    if (event.node >= known.size() || known[event.node]) continue;
    known[event.node] = true;
    add(trace.str(event.node));
  }
  // Events without a name are the tracer's own.
  if (nameless) add(trace.meta.node);
  return names;
}

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
  // The coarser threshold is the one that holds for the whole.
  into.network_delay_ns = std::max(into.network_delay_ns, meta.network_delay_ns);
  into.pause_ns = std::max(into.pause_ns, meta.pause_ns);
  into.workload_ts = earliest(into.workload_ts, meta.workload_ts);
  into.begin_ns = earliest(into.begin_ns, meta.begin_ns);
  into.end_ns = std::max(into.end_ns, meta.end_ns);
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

std::string_view type_name(EventType type) {
  switch (type) {
    case EventType::scf: return "scf";
    case EventType::af: return "af";
    case EventType::nd: return "nd";
    case EventType::ps: return "ps";
    case EventType::sys: return "sys";
  }
  return "unknown";
}

std::string_view state_name(ProcessState state) {
  switch (state) {
    case ProcessState::none: return "none";
    case ProcessState::crashed: return "crashed";
    case ProcessState::exited: return "exited";
    case ProcessState::paused: return "paused";
    case ProcessState::started: return "started";
  }
  return "unknown";
}

std::optional<std::string> event_fault(const Event& event, std::size_t strings) {
  const auto bad = [](std::string_view field, std::int64_t value) {
    return fmt::format("{} {} is out of range", field, value);
  };
  const auto type = static_cast<int>(event.type);
  if (type < static_cast<int>(EventType::scf) || type > static_cast<int>(EventType::sys))
    return bad("type", type);
  if (event.state > ProcessState::started) return bad("state", static_cast<int>(event.state));
  if (event.protocol != Protocol::none && event.protocol != Protocol::tcp && event.protocol != Protocol::udp)
    return bad("protocol", static_cast<int>(event.protocol));
  if ((event.flags & ~kKnownFlags) != 0) return bad("flags", event.flags);
  if (event.ts_ns < 0 || event.ts_ns > kLatestTs) return bad("ts", event.ts_ns);
  if (event.pid < 0) return bad("pid", event.pid);
  if (event.tid < 0) return bad("tid", event.tid);
  if (event.fd < -1) return bad("fd", event.fd);
  if (event.duration_ms < -1) return bad("duration_ms", event.duration_ms);
  if (event.exit_code < -1 || event.exit_code > kMostExitCode) return bad("exit_code", event.exit_code);
  if (event.count == 0) return bad("count", 0);
  if (event.syscall < -1 || event.syscall >= kernel::kMostSyscalls) return bad("syscall", event.syscall);
  if (event.err < 0 || event.err > kMostErrno) return bad("errno", event.err);
  if (event.signal > kMostSignal) return bad("signal", event.signal);
  for (const StringId id :
       {event.node, event.path, event.path2, event.peer, event.function, event.src, event.dst}) {
    if (id >= strings) return fmt::format("string {} does not exist, there are {}", id, strings);
  }
  return std::nullopt;
}

}  // namespace rose::trace
