#include "diagnose/extract/given.h"

namespace rose::diagnose {

double Given::plainness(const Event& event) const {
  const LogEvidence::OfEvent* of = log_evidence(event);
  return of == nullptr ? 1 : of->weight;
}

const LogEvidence::OfEvent* Given::log_evidence(const Event& event) const {
  for (const LogEvidence& evidence : inputs.log_evidence) {
    const std::vector<Event>& events = inputs.traces[evidence.trace].events;
    if (events.empty() || &event < &events.front() || &event > &events.back()) continue;
    const auto found = evidence.events.find(static_cast<std::size_t>(&event - &events.front()));
    if (found != evidence.events.end()) return &found->second;
  }
  return nullptr;
}

std::int64_t Given::pause_threshold() const {
  for (const trace::Trace& trace : inputs.traces)
    if (trace.meta.pause_ns > 0) return trace.meta.pause_ns;
  return config().trace.pause_ns;
}

std::int64_t Given::network_threshold() const {
  for (const trace::Trace& trace : inputs.traces)
    if (trace.meta.network_delay_ns > 0) return trace.meta.network_delay_ns;
  return config().trace.network_delay_ns;
}

}  // namespace rose::diagnose
