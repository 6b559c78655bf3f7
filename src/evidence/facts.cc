#include "evidence/facts.h"

#include <map>

#include "base/units.h"
#include "weights/weights.h"

namespace rose::evidence {
std::string Times::at(std::int64_t ts) const {
  if (workload != 0)
    return ts >= workload ? fmt::format("{} after the workload began", format_duration(ts - workload))
                          : fmt::format("{} before the workload began", format_duration(workload - ts));
  return fmt::format("{} into the {}", format_duration(std::max<std::int64_t>(0, ts - begin)),
                     recorded ? "dump" : "logs");
}

double Times::longer_than_a_run(const profile::Profile& profile) const {
  const double run = profile.seconds / std::max(1, profile.runs);
  if (run <= 0) return 1;
  return std::max(1.0, static_cast<double>(end - begin) / 1e9 / run);
}

double Times::runs_in_window(const profile::Profile& profile) const {
  const double longer = longer_than_a_run(profile);
  return longer < kLongerThanRun ? 1 : longer;
}

std::int64_t end_began(const Event& event) {
  const bool ended = event.state == ProcessState::crashed || event.state == ProcessState::exited;
  return ended && event.count == 1 ? event.ts_ns - std::max<std::int64_t>(0, event.duration_ms) * kMillisecond
                                   : event.ts_ns;
}

std::int64_t Facts::back_after(int node, std::int64_t ts) const {
  const std::vector<std::int64_t>& of = starts[static_cast<std::size_t>(node)];
  const auto it = std::upper_bound(of.begin(), of.end(), ts);
  return it == of.end() ? kNever : *it;
}

bool asked_to_end(const trace::TraceBase& trace, const Event& event) {
  if (event.state != ProcessState::exited || event.by == 0) return false;
  const std::string_view by = trace.str(event.by);
  return by != "kernel" && by != "itself";
}

Facts read_facts(const Given& given) {
  const auto nodes = static_cast<std::size_t>(given.nodes.count());
  Facts facts;
  std::vector<bool> main_known(nodes, false);
  std::vector<std::pair<const Event*, int>> started;
  std::map<std::string, std::uint64_t> unmatched_hosts;
  // Reads a process event.
  const auto process = [&](std::size_t s, const Observation& event) {
    const bool start = event.state == ProcessState::started;
    const int node = given.nodes.of(s, event);
    if (node < 0) {
      if (!start) unmatched_hosts[given.nodes.dump_name(s, event)] += weight_of(event);
      return;
    }
    const bool main = (event.flags & trace::kMain) != 0;
    if (main) main_known[static_cast<std::size_t>(node)] = true;
    if (start) started.emplace_back(&event, node);
    else
      facts.processes.push_back({&event, s, node, event.signal, event.exit_code, main, false, weight_of(event),
                                 end_began(event), false, asked_to_end(given.inputs.sources[s], event)});
  };

  std::int64_t begin = kNever;
  Times& times = facts.times;
  times.recorded = given.inputs.recorded();
  for (std::size_t s = 0; s < given.inputs.sources.size(); ++s) {
    const Source& source = given.inputs.sources[s];
    if (source.meta.begin_ns > 0) begin = std::min(begin, source.meta.begin_ns);
    times.end = std::max(times.end, source.meta.end_ns);
    if (source.meta.workload_ts > 0 && (times.workload == 0 || source.meta.workload_ts < times.workload))
      times.workload = source.meta.workload_ts;
    if (source.meta.lost > 0)
      facts.notes.push_back(fmt::format("{} events were lost by the tracer of '{}': the cause may be among them",
                                        source.meta.lost,
                                        source.meta.node.empty() ? source.meta.host : source.meta.node));
    for (const Observation& event : source.observations) {
      begin = std::min(begin, event.ts_ns - std::max<std::int64_t>(0, event.duration_ms) * kMillisecond);
      times.end = std::max(times.end, event.ts_ns);
      switch (event.type) {
        case EventType::af:
        case EventType::sys: break;
        case EventType::scf: facts.failures += weight_of(event); break;
        case EventType::nd:
          facts.failures += weight_of(event);
          facts.silences.emplace_back(s, &event);
          break;
        case EventType::ps:
          if (event.state != ProcessState::started) facts.failures += weight_of(event);
          process(s, event);
          break;
      }
    }
  }
  times.begin = begin == kNever ? times.end : begin;
  if (times.workload > times.end) {
    facts.notes.push_back("the dump claims that the workload began after its last event: that is ignored");
    times.workload = 0;
  }

  for (const auto& [host, events] : unmatched_hosts) facts.discards.add_unmatched(host, events);
  std::stable_sort(facts.processes.begin(), facts.processes.end(),
                   [](const ProcessEvent& a, const ProcessEvent& b) { return a.began < b.began; });
  for (ProcessEvent& p : facts.processes) p.main_known = main_known[static_cast<std::size_t>(p.node)];
  facts.starts.resize(nodes);
  for (const auto& [event, node] : started)
    if (!main_known[static_cast<std::size_t>(node)] || (event->flags & trace::kMain) != 0)
      facts.starts[static_cast<std::size_t>(node)].push_back(event->ts_ns);
  for (std::vector<std::int64_t>& starts : facts.starts) std::sort(starts.begin(), starts.end());
  return facts;
}

}  // namespace rose::evidence
