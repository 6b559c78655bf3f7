#include <algorithm>
#include <cstdlib>

#include "evidence/signs_of_life.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

// True if the node ended and the dump does not show that it started again.
bool gone(const Cause& c) {
  return c.end == kNever && (c.kind == CauseKind::killed || c.kind == CauseKind::ended_itself) && !c.partly;
}

using TimesByNode = std::vector<std::vector<std::int64_t>>;

TimesByNode sorted(TimesByNode times) {
  for (std::vector<std::int64_t>& of : times) std::sort(of.begin(), of.end());
  return times;
}

// By node: times at which its main process certainly was running.
TimesByNode own_activity(const Given& given, const Facts& facts) {
  TimesByNode active(static_cast<std::size_t>(given.nodes.count()));
  for (const auto& [s, event] : facts.silences) {
    const int src = event->src == 0 ? NodeMap::kNone : given.nodes.of_address(given.inputs.sources[s].str(event->src));
    // With a shared address, another node may have sent the packets.
    if (src < 0 || event->duration_ms < 0 || given.nodes.shares_network(src)) continue;
    active[static_cast<std::size_t>(src)].push_back(
        event->ts_ns - event->duration_ms * kMillisecond);  // the last packet before the silence
    if ((event->flags & trace::kOpen) == 0) active[static_cast<std::size_t>(src)].push_back(event->ts_ns);
  }
  for (const ProcessEvent& p : facts.processes)
    if (p.event->state != ProcessState::paused && (p.main || !p.main_known))
      active[static_cast<std::size_t>(p.node)].push_back(p.event->ts_ns);
  return sorted(std::move(active));
}

// By node: times at which any of its processes was active, at least kLastPacketAfter apart.
TimesByNode any_activity(const Given& given) {
  TimesByNode any_activity(static_cast<std::size_t>(given.nodes.count()));
  for (std::size_t s = 0; s < given.inputs.sources.size(); ++s)
    for (const Observation& event : given.inputs.sources[s].observations) {
      if (event.type != EventType::af && event.type != EventType::sys && event.type != EventType::scf) continue;
      const int node = given.nodes.of(s, event);
      if (node < 0) continue;
      std::vector<std::int64_t>& list = any_activity[static_cast<std::size_t>(node)];
      if (list.empty() || std::abs(event.ts_ns - list.back()) > kLastPacketAfter) list.push_back(event.ts_ns);
    }
  return sorted(std::move(any_activity));
}

std::int64_t first_after(const std::vector<std::int64_t>& list, std::int64_t ts) {
  const auto it = std::upper_bound(list.begin(), list.end(), ts);
  return it == list.end() ? kNever : *it;
}

}  // namespace

std::vector<Cause> end_by_signs_of_life(std::vector<Cause> causes, const Given& given, const Facts& facts) {
  if (std::none_of(causes.begin(), causes.end(), gone)) return causes;
  const TimesByNode own_times = own_activity(given, facts);
  const TimesByNode any_times = any_activity(given);
  for (Cause& cause : causes) {
    if (!gone(cause)) continue;
    const auto node = static_cast<std::size_t>(cause.node);
    const std::int64_t own = first_after(own_times[node], cause.start + kLastPacketAfter);
    const std::int64_t sign = std::min(own, first_after(any_times[node], cause.start + kHelpersEndAfter));
    if (sign != kNever)
      cause.end =
          cause.start + (sign - cause.start) / 2;  // it started at an unknown time in between: assume the middle
    // If the node communicated later although no start was recorded, the process that ended was not its main one.
    if (own != kNever && cause.main_unknown) cause.partly = true;
  }
  return causes;
}

}  // namespace rose::evidence
