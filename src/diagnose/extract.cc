#include "diagnose/extract.h"

#include "base/units.h"
#include "diagnose/extractor.h"

namespace rose::diagnose {

void Extractor::run() {
  times();
  collect();
  processes();
  end_causes_by_signs_of_life();
  network();
  syscalls();
  exceptions();
  clocks();
  explain_own_ends();
  rank();
  finish();
}

void Extractor::times() {
  std::int64_t begin = kNever;
  std::int64_t end = 0;
  std::int64_t workload = 0;
  for (const trace::Trace& trace : inputs_.traces) {
    if (trace.meta.begin_ns > 0) begin = std::min(begin, trace.meta.begin_ns);
    end = std::max(end, trace.meta.end_ns);
    for (const Event& event : trace.events) {
      begin = std::min(begin, event.ts_ns - std::max<std::int64_t>(0, event.duration_ms) * kMs);
      end = std::max(end, event.ts_ns);
    }
    if (trace.meta.workload_ts > 0 && (workload == 0 || trace.meta.workload_ts < workload)) workload = trace.meta.workload_ts;
    if (trace.meta.lost > 0)
      note(fmt::format("{} events were lost by the tracer of '{}': the cause may be among them", trace.meta.lost,
                       trace.meta.node.empty() ? trace.meta.host : trace.meta.node));
  }
  if (begin == kNever) begin = end;
  if (workload > end) {
    note("the dump says that the workload began after its last event: that is not believed");
    workload = 0;
  }
  plan_.begin_ts = begin;
  plan_.end_ts = end;
  plan_.workload_ts = workload;
}

std::string Extractor::at(std::int64_t ts) const {
  if (plan_.workload_ts != 0)
    return ts >= plan_.workload_ts ? fmt::format("{} after the workload began", format_duration(ts - plan_.workload_ts))
                                   : fmt::format("{} before the workload began", format_duration(plan_.workload_ts - ts));
  return fmt::format("{} into the dump", format_duration(std::max<std::int64_t>(0, ts - plan_.begin_ts)));
}

const Said::Of* Extractor::said(const Event& event) const {
  for (const Said& one : inputs_.said) {
    const std::vector<Event>& events = inputs_.traces[one.trace].events;
    if (events.empty() || &event < &events.front() || &event > &events.back()) continue;
    const auto found = one.events.find(static_cast<std::size_t>(&event - &events.front()));
    if (found != one.events.end()) return &found->second;
  }
  return nullptr;
}

void Extractor::from_log(Candidate& candidate, const Event& event) const {
  const Said::Of* of = said(event);
  if (of == nullptr) return;
  candidate.said = of->weight;
  candidate.why = of->words;
  candidate.since_ts = of->since_ns;
}

void Extractor::discard(std::string_view why, std::uint64_t events) {
  if (events == 0) return;
  const auto it = discarded_.find(why);
  if (it == discarded_.end())
    discarded_.emplace(std::string(why), events);
  else
    it->second += events;
}

std::string Extractor::unique_id(std::string base) {
  if (base.size() > 56) base.resize(56);
  const int n = ++ids_[base];
  return n == 1 ? base : fmt::format("{}-{}", base, n);
}

void Extractor::collect() {
  main_known_.assign(static_cast<std::size_t>(nodes_.count()), false);
  starts_.resize(static_cast<std::size_t>(nodes_.count()));
  std::map<std::string, std::uint64_t> strangers;
  for (std::size_t s = 0; s < inputs_.traces.size(); ++s) {
    for (const Event& event : inputs_.traces[s].events) {
      if (event.type == EventType::af || event.type == EventType::sys) continue;
      if (event.type == EventType::ps && event.state == ProcessState::started) {
        const int node = nodes_.of(s, event);
        if (node < 0) continue;
        if ((event.flags & trace::kMain) != 0) main_known_[static_cast<std::size_t>(node)] = true;
        started_.push_back({&event, node});
        continue;
      }
      plan_.failures += weight_of(event);
      if (event.type == EventType::scf) continue;
      if (event.type == EventType::nd) {
        silences_.push_back({s, &event});
        continue;
      }
      const int node = nodes_.of(s, event);
      if (node < 0) {
        strangers[nodes_.dump_name(s, event)] += weight_of(event);
        continue;
      }
      if ((event.flags & trace::kMain) != 0) main_known_[static_cast<std::size_t>(node)] = true;
      ProcessEvent process{&event, node, 0, event.exit_code, (event.flags & trace::kMain) != 0, false, weight_of(event)};
      process.signal = event.signal;
      ps_.push_back(process);
    }
  }
  for (const auto& [host, events] : strangers) discard(stranger(host), events);
  std::stable_sort(ps_.begin(), ps_.end(),
                   [](const ProcessEvent& a, const ProcessEvent& b) { return a.event->ts_ns < b.event->ts_ns; });
  for (ProcessEvent& p : ps_) p.main_known = main_known_[static_cast<std::size_t>(p.node)];
  for (const auto& [event, node] : started_)
    if (!main_known_[static_cast<std::size_t>(node)] || (event->flags & trace::kMain) != 0)
      starts_[static_cast<std::size_t>(node)].push_back(event->ts_ns);
  for (std::vector<std::int64_t>& starts : starts_) std::sort(starts.begin(), starts.end());
}

std::string Extractor::stranger(const std::string& host) {
  return host.empty() ? std::string("their host is not named and matches no node of the deployment (see --map)")
                      : fmt::format("host '{}' matches no node of the deployment (see --map)", host);
}

std::int64_t Extractor::back_after(int node, std::int64_t ts) const {
  const std::vector<std::int64_t>& starts = starts_[static_cast<std::size_t>(node)];
  const auto it = std::upper_bound(starts.begin(), starts.end(), ts);
  return it == starts.end() ? kNever : *it;
}

Candidate& Extractor::add(FaultKind kind, int node, Fault fault, std::uint64_t count, std::int64_t ts) {
  Candidate& c = plan_.candidates.emplace_back();
  c.kind = kind;
  c.node = name(node);
  c.count = count;
  c.first_ts = ts;
  c.last_ts = ts;
  c.fault = std::move(fault);
  return c;
}

std::int64_t Extractor::pause_threshold() const {
  for (const trace::Trace& trace : inputs_.traces)
    if (trace.meta.pause_ns > 0) return trace.meta.pause_ns;
  return config_.trace.pause_ns;
}

std::int64_t Extractor::network_threshold() const {
  for (const trace::Trace& trace : inputs_.traces)
    if (trace.meta.network_delay_ns > 0) return trace.meta.network_delay_ns;
  return config_.trace.network_delay_ns;
}

void extract(const Inputs& inputs, const NodeMap& nodes, std::int64_t longest_ns, Plan& plan) {
  Extractor(inputs, nodes, longest_ns, plan).run();
}

}  // namespace rose::diagnose
