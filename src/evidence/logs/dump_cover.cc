#include "evidence/logs/dump_cover.h"

#include <algorithm>
#include <set>

#include "base/units.h"
#include "evidence/nodes.h"
#include "weights/weights.h"

namespace rose::evidence {

using trace::EventType;
using trace::ProcessState;
using trace::StringId;

DumpCover::DumpCover(const Evidence& inputs, const LogCase& log_case) : inputs_(inputs), case_(log_case) {
  if (!inputs.recorded()) return;
  const Result<NodeMap> nodes = NodeMap::make(inputs);
  if (!nodes) return;  // the plan will report the error
  for (std::size_t i = 0; i < inputs.sources.size(); ++i) read(i, *nodes);
}

// Records which nodes the dump contains, which time it covers for each of them, and which silences and pauses it
// contains. If the tracer's window was full, that time begins with the first event, because earlier events were
// overwritten.
void DumpCover::read(std::size_t source, const NodeMap& nodes) {
  const Source& dump = inputs_.sources[source];
  if (dump.observations.empty()) return;
  if (dump.meta.end_ns != 0) last_end_ = std::max(last_end_, dump.meta.end_ns);
  const bool full = dump.meta.window != 0 && dump.observations.size() >= dump.meta.window;
  const Window window{full || dump.meta.begin_ns == 0 ? dump.observations.front().ts_ns : dump.meta.begin_ns,
                      dump.meta.end_ns > 0 ? dump.meta.end_ns : dump.observations.back().ts_ns,
                      dump.meta.lost == 0 && dump.meta.pairs_evicted == 0};
  std::set<int> players;
  StringId last = 0;
  for (const Observation& event : dump.observations) {
    if (event.type == EventType::nd || (event.type == EventType::ps && event.state == ProcessState::paused)) {
      const int node = nodes.of(source, event);
      silent_spans_.push_back({node >= 0 ? nodes.name(node) : std::string(),
                               event.ts_ns - std::max(event.duration_ms, 0) * kMillisecond, event.ts_ns});
    }
    if (!players.empty() && event.node == last) continue;
    last = event.node;
    if (const int node = nodes.of(source, event); node >= 0) players.insert(node);
  }
  for (const int node : players) windows_[nodes.name(node)].push_back(window);
}

// A log without timestamps got its times from the control run. They do not show whether a dump covers the message.
double DumpCover::factor(const std::string& node, std::int64_t ts, std::size_t log) const {
  if (!inputs_.recorded()) return 1;
  const std::vector<logs::NodeLog>& logs = case_.evidence().failure.nodes;
  const bool timed = case_.timed() && !(log < logs.size() && logs[log].aligned);
  // Dumps are written after the failure. What happens later is probably a consequence, or the end of the system.
  if (timed && last_end_ != 0 && ts > last_end_ + kClocksApart) return kWithDump;
  const auto windows = windows_.find(node);
  if (windows == windows_.end()) return kUnwatchedNode;
  double left = kUnwatchedNode;
  for (const Window& span : windows->second)
    if (!timed || (ts >= span.begin - kClocksApart && ts <= span.end + kClocksApart))
      left = std::min(left, span.whole ? 0 : kWithDump);
  return left;
}

bool DumpCover::has_silence(const logs::Hint& hint, const std::string& node) const {
  const std::int64_t ts = case_.time_of(hint);
  return std::any_of(silent_spans_.begin(), silent_spans_.end(), [&](const SilentSpan& span) {
    return (span.node.empty() || span.node == node || span.node == hint.peer) && ts >= span.begin - kClocksApart &&
           ts <= span.end + kClocksApart;
  });
}

}  // namespace rose::evidence
