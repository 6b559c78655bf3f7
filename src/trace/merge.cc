#include "trace/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "trace/clock.h"
#include "trace/limits.h"

namespace rose::trace {
namespace {

// The earlier of two times, where 0 means "unknown".
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

constexpr std::size_t kMostHandshakes = 65536;  // most handshakes in a merged dump

// The traces that have a common clock.
struct Host {
  std::string name;  // name of the host, for messages
  std::vector<std::size_t> traces;
};

std::vector<Host> hosts_of(const std::vector<Trace>& traces) {
  std::vector<Host> hosts;
  std::map<std::string, std::size_t> by_boot;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const Meta& meta = traces[i].meta;
    std::size_t at = hosts.size();
    // A dump that was merged from several hosts has no boot id, but it has one clock.
    if (!meta.boot_id.empty()) at = by_boot.emplace(meta.boot_id, at).first->second;
    if (at == hosts.size()) hosts.emplace_back();
    hosts[at].traces.push_back(i);
    if (hosts[at].name.empty()) hosts[at].name = meta.host.empty() ? meta.node : meta.host;
  }
  // The names of hosts may be equal or missing.
  std::map<std::string, int> names;
  for (const auto& host : hosts) ++names[host.name];
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto& host = hosts[i];
    const Meta& meta = traces[host.traces.front()].meta;
    if (names[host.name] > 1 && !meta.node.empty() && meta.node != host.name) {
      host.name = fmt::format("{} ({})", host.name, meta.node);
    } else if (host.name.empty()) {
      host.name = meta.nodes.empty() ? fmt::format("dump {}", host.traces.front() + 1) : meta.nodes.front();
    }
  }
  return hosts;
}

bool is_called(const Host& host, const std::vector<Trace>& traces, const std::string& name) {
  if (host.name == name) return true;
  return std::any_of(host.traces.begin(), host.traces.end(), [&](std::size_t i) {
    const Meta& meta = traces[i].meta;
    const auto nodes = node_names(traces[i]);
    return meta.host == name || meta.node == name || meta.boot_id == name ||
           std::find(nodes.begin(), nodes.end(), name) != nodes.end();
  });
}

std::string milliseconds(double ns) {
  const double ms = std::abs(ns) / 1e6;
  return ms >= 100 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.3f} ms", ms);
}

std::string sentence(const MergedClock& clock, const HostClock& found, const std::string& first) {
  if (!clock.known) {
    return fmt::format(
        "{}: clock not estimated: no connection to {} was recorded on both sides; its times are unchanged", clock.host,
        first);
  }
  const auto way = fmt::format("{} {} of {}", milliseconds(static_cast<double>(clock.ahead_ns)),
                               clock.ahead_ns < 0 ? "behind" : "ahead", first);
  if (clock.given) return fmt::format("{}: clock {}, as given; corrected", clock.host, way);
  const double drift = found.end_ns > found.begin_ns
                           ? (found.ahead_end - found.ahead_begin) / static_cast<double>(found.end_ns - found.begin_ns)
                           : 0;
  return fmt::format("{}: clock {}, within {}, from {} handshake{}{}{}; corrected", clock.host, way,
                     milliseconds(static_cast<double>(clock.error_ns)), clock.handshakes,
                     clock.handshakes == 1 ? "" : "s",
                     found.steps > 1 ? fmt::format(" over {} hosts", found.steps - 1) : std::string(),
                     std::abs(drift) >= 1e-6 ? fmt::format(", drifting {:+.0f} ppm", drift * 1e6) : std::string());
}

std::int64_t moved(std::int64_t ts, const HostClock& clock) {
  return ts == 0 ? 0 : std::clamp<std::int64_t>(clock.to_first(ts), 1, kLatestTs);
}

// The header, in which all times, including those of handshakes, were converted to the first host's clock.
Meta moved(const Meta& meta, const HostClock& clock) {
  Meta out = meta;
  for (std::int64_t* ts : {&out.wall_base_ns, &out.workload_ts, &out.begin_ns, &out.end_ns}) *ts = moved(*ts, clock);
  for (std::string& line : out.handshakes) {
    auto handshake = to_handshake(line);
    if (!handshake) continue;
    for (std::int64_t* ts : {&handshake->syn_ns, &handshake->synack_ns, &handshake->ack_ns}) *ts = moved(*ts, clock);
    line = to_text(*handshake);
  }
  return out;
}

void combine(Meta& into, const Trace& trace, const HostClock& clock) {
  const Meta meta = moved(trace.meta, clock);
  if (into.node != meta.node) into.node.clear();
  if (into.host != meta.host) into.host.clear();
  if (into.boot_id != meta.boot_id || into.wall_base_ns != meta.wall_base_ns ||
      into.monotonic_base_ns != meta.monotonic_base_ns) {
    // The relation between the two base times holds only within one boot.
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
    const auto known = std::find_if(
        into.suppressed_calls.begin(), into.suppressed_calls.end(),
        [&](const SuppressedCall& other) { return other.syscall == call.syscall && other.err == call.err; });
    if (known == into.suppressed_calls.end()) into.suppressed_calls.push_back(call);
    else known->count += call.count;
  }
  std::stable_sort(into.suppressed_calls.begin(), into.suppressed_calls.end(),
                   [](const SuppressedCall& a, const SuppressedCall& b) { return a.count > b.count; });
  into.pairs_evicted += meta.pairs_evicted;
  // In the merged trace, only silences and pauses above the larger of the two thresholds are complete.
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
  unite(into.labels, meta.labels);
  const auto room = kMostHandshakes - std::min(kMostHandshakes, into.handshakes.size());
  into.handshakes.insert(into.handshakes.end(), meta.handshakes.begin(),
                         meta.handshakes.begin() + static_cast<std::ptrdiff_t>(std::min(room, meta.handshakes.size())));
  unite(into.clock, meta.clock);
}

// By how much the clock was changed between two dumps of the same boot, `meta` and the later `latest`; 0 if it was not.
std::int64_t set_since(const Meta& meta, const Meta& latest) {
  constexpr std::int64_t kLeast = 1'000'000;  // smaller differences may come from reading the clocks
  if (meta.monotonic_base_ns == 0 || meta.wall_base_ns == 0 || latest.monotonic_base_ns == 0 ||
      latest.wall_base_ns == 0)
    return 0;
  const std::int64_t change =
      (latest.wall_base_ns - latest.monotonic_base_ns) - (meta.wall_base_ns - meta.monotonic_base_ns);
  // The values may be implausible, because the dump may come from any source.
  if (std::abs(change) < kLeast || std::abs(change) >= kLatestTs) return 0;
  const std::int64_t wall = meta.wall_base_ns + change;
  return wall < 1 || wall > kLatestTs ? 0 : change;
}

// If the clock was changed between dumps of one boot, converts these dumps to the clock of the latest dump. Returns an
// empty list if no clock was changed.
std::vector<Trace> on_latest_clocks(const std::vector<Trace>& traces, const std::vector<Host>& hosts) {
  std::vector<Trace> set;
  for (const Host& host : hosts) {
    const auto latest = *std::max_element(host.traces.begin(), host.traces.end(), [&](std::size_t a, std::size_t b) {
      return traces[a].meta.monotonic_base_ns < traces[b].meta.monotonic_base_ns;
    });
    for (const auto i : host.traces) {
      const std::int64_t change = set_since(traces[i].meta, traces[latest].meta);
      if (change == 0) continue;
      if (set.empty()) set = traces;
      HostClock clock;
      clock.known = true;
      clock.ahead_begin = clock.ahead_end = -static_cast<double>(change);
      Meta& meta = set[i].meta = moved(traces[i].meta, clock);
      meta.wall_base_ns =
          meta.monotonic_base_ns + (traces[latest].meta.wall_base_ns - traces[latest].meta.monotonic_base_ns);
      if (traces[latest].meta.clock.empty())
        meta.clock.push_back(step_text(host.name, traces[latest].meta.wall_base_ns, change));
      for (Event& event : set[i].events) event.ts_ns = std::clamp<std::int64_t>(event.ts_ns + change, 1, kLatestTs);
    }
  }
  return set;
}

}  // namespace

Result<Trace> merge(const std::vector<Trace>& traces, const MergeOptions& options, std::vector<MergedClock>* clocks) {
  Trace merged;
  if (traces.empty()) return merged;
  const auto hosts = hosts_of(traces);
  if (const std::vector<Trace> set = on_latest_clocks(traces, hosts); !set.empty()) return merge(set, options, clocks);
  std::vector<HostClock> found(hosts.size());
  if (options.estimate_clocks) {
    std::vector<HostHandshakes> seen(hosts.size());
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      for (const auto i : hosts[h].traces) {
        for (const auto& line : traces[i].meta.handshakes) {
          if (const auto handshake = to_handshake(line)) seen[h].handshakes.push_back(*handshake);
        }
        if (traces[i].events.empty()) continue;
        const auto first = traces[i].events.front().ts_ns, last = traces[i].events.back().ts_ns;
        seen[h].begin_ns = seen[h].begin_ns == 0 ? first : std::min(seen[h].begin_ns, first);
        seen[h].end_ns = std::max(seen[h].end_ns, last);
      }
    }
    found = estimate_clocks(seen);
  }
  std::vector<MergedClock> host_clocks(hosts.size());
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    host_clocks[h].host = hosts[h].name;
    host_clocks[h].known = found[h].known;
    host_clocks[h].ahead_ns = std::llround(found[h].ahead_end);
    host_clocks[h].error_ns = static_cast<std::int64_t>(std::ceil(found[h].error_ns));
    host_clocks[h].handshakes = found[h].handshakes;
  }
  for (const auto& [name, ahead_ns] : options.ahead_ns) {
    bool any = false;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      if (!is_called(hosts[h], traces, name)) continue;
      any = true;
      found[h] = {};
      found[h].known = true;
      found[h].ahead_begin = found[h].ahead_end = static_cast<double>(ahead_ns);
      host_clocks[h] = {hosts[h].name, true, true, ahead_ns, 0, 0, {}};
    }
    if (any) continue;
    std::string names;
    for (const auto& host : hosts) names += (names.empty() ? "'" : ", '") + host.name + "'";
    return fail(ErrorKind::usage, fmt::format("none of the dumps is from a host '{}'", name), "they are from " + names);
  }
  std::vector<const HostClock*> clock_of(traces.size(), nullptr);
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    for (const auto i : hosts[h].traces) clock_of[i] = &found[h];
    // The first host is the reference, so no sentence about it is needed.
    if ((h > 0 && options.estimate_clocks) || host_clocks[h].given)
      host_clocks[h].text = sentence(host_clocks[h], found[h], hosts[0].name);
  }
  merged.meta = moved(traces.front().meta, *clock_of[0]);
  merged.meta.nodes = node_names(traces.front());
  std::size_t total = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    total += traces[i].events.size();
    if (i > 0) combine(merged.meta, traces[i], *clock_of[i]);
  }
  merged.events.reserve(total);
  for (const auto& clock : host_clocks) {
    if (!clock.text.empty()) merged.meta.clock.push_back(clock.text);
  }
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const Trace& trace = traces[t];
    const HostClock& clock = *clock_of[t];
    const bool moves = clock.known && (clock.ahead_begin != 0 || clock.ahead_end != 0);
    std::vector<StringId> ids(trace.strings.size(), 0);
    const auto move_id = [&](StringId& id) {
      if (id >= ids.size()) id = 0;
      if (id == 0) return;
      if (ids[id] == 0) ids[id] = merged.strings.intern(trace.strings[id]);
      id = ids[id];
    };
    // The merged header does not show to which node an event without a node belongs, so the event gets the node of its
    // dump.
    const StringId own = trace.meta.node.empty() ? 0 : merged.strings.intern(trace.meta.node);
    for (Event event : trace.events) {
      if (moves) event.ts_ns = moved(event.ts_ns, clock);
      if (event.node == 0) {
        event.node = own;
      } else {
        move_id(event.node);
      }
      for (StringId* id : {&event.path, &event.path2, &event.peer, &event.function, &event.src, &event.dst, &event.by})
        move_id(*id);
      merged.events.push_back(event);
    }
  }
  sort_by_time(merged);
  if (clocks != nullptr) *clocks = std::move(host_clocks);
  return merged;
}

Trace merge(const std::vector<Trace>& traces) {
  auto merged = merge(traces, MergeOptions{});
  // the only possible error is an unknown host name, and none is given here
  return merged ? std::move(*merged) : Trace{};
}

}  // namespace rose::trace
