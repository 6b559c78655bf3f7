#include "diagnose/extract/cut.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "diagnose/forms.h"
#include "diagnose/words.h"

namespace rose::diagnose {
namespace {

constexpr std::size_t kMostPorts = 16;  // of one partition

Fault fault_of(const Given& given, const Cut& cut, Ids& ids) {
  Fault fault;
  fault.kind = FaultKind::partition;
  fault.node = given.name(cut.node);
  fault.id = ids.next("cut-" + fault.node);
  fault.direction = cut.direction;
  fault.ports = cut.ports;
  if (fault.ports.size() > kMostPorts) fault.ports.resize(kMostPorts);
  fault.duration_ns = rounded(cut.duration);
  if (!cut.all_others)
    for (const int peer : cut.peers) fault.peers.push_back(given.name(peer));
  return fault;
}

// The message that states most clearly that this partition made a connection silent at that time, the first of several;
// nullptr if there is none.
const LogEvidence::OfEvent* log_evidence_of(const Given& given, const Facts& facts, const Cut& cut) {
  const LogEvidence::OfEvent* plainest = nullptr;
  for (const auto& [s, event] : facts.silences) {
    const LogEvidence::OfEvent* evidence = given.log_evidence(*event);
    const bool then =
        event->ts_ns >= cut.start && event->ts_ns - std::max(event->duration_ms, 0) * kMillisecond <= cut.end;
    if (evidence == nullptr || !then || (plainest != nullptr && evidence->weight <= plainest->weight)) continue;
    const trace::Trace& trace = given.inputs.traces[s];
    const int src = given.nodes.of_address(trace.str(event->src)), dst = given.nodes.of_address(trace.str(event->dst));
    const int other = src == cut.node ? dst : dst == cut.node ? src : -1;
    if (std::find(cut.peers.begin(), cut.peers.end(), other) != cut.peers.end()) plainest = evidence;
  }
  return plainest;
}

// Only pairs that communicate fall silent, so the partition may have been wider than the dump can show.
std::vector<Fault> further(const Given& given, const Cut& cut, const Fault& base) {
  std::vector<Fault> shapes;
  if (cut.direction != schedule::Direction::both) {
    Fault both = base;
    both.direction = schedule::Direction::both;
    shapes.push_back(std::move(both));
  }
  if (!cut.silent && cut.direction == schedule::Direction::both && cut.failed_at == std::vector<int>{cut.node}) {
    Fault out = base;  // no other node reports that it could not reach it
    out.direction = schedule::Direction::out;
    shapes.push_back(std::move(out));
  }
  if (!base.peers.empty()) {
    Fault wide = base;
    wide.peers.clear();
    shapes.push_back(wide);
    if (cut.peers.size() == 1) {
      wide.node = given.name(cut.peers[0]);
      wide.id += "-other";
      if (wide.direction != schedule::Direction::both)
        wide.direction = wide.direction == schedule::Direction::in ? schedule::Direction::out : schedule::Direction::in;
      shapes.push_back(std::move(wide));
    }
  }
  return shapes;
}

}  // namespace

Candidate cut_candidate(const Given& given, const Facts& facts, const Cut& cut, Ids& ids) {
  Fault fault = fault_of(given, cut, ids);
  std::vector<Fault> shapes = further(given, cut, fault);
  // The calls are candidates themselves, and are counted there.
  Candidate c = candidate_of(std::move(fault), cut.events, cut.start);
  c.alternatives = std::move(shapes);
  c.last_ts = cut.end;
  for (const int peer : cut.peers) c.peer += fmt::format("{}{}", c.peer.empty() ? "" : ", ", given.name(peer));
  if (cut.open) still_so(c, facts.times, 0);
  const std::string others = c.peer.empty() ? "all others" : c.peer;
  const std::string length = format_duration(rounded(cut.duration));
  const std::string since = facts.times.at(cut.start);
  if (cut.silent) {
    const char* way = cut.direction == schedule::Direction::in    ? "nothing reached {0} from {1}"
                      : cut.direction == schedule::Direction::out ? "nothing reached {1} from {0}"
                                                                  : "silence between {0} and {1}";
    c.why = fmt::format("{} for {}, from {}", fmt::format(fmt::runtime(way), c.node, others), length, since);
    if (cut.calls > 0) c.why += fmt::format("; {} calls between them failed as unreachable", cut.calls);
  } else {
    c.plainness = cut.plain;
    c.known = Known::inferred;
    c.why = fmt::format("{} calls between {} and {} failed as unreachable in {}, from {}", cut.calls, c.node, others,
                        length, since);
  }
  if (cut.open) c.why += ", and still so when the dump was written";
  if (const LogEvidence::OfEvent* evidence = log_evidence_of(given, facts, cut); evidence != nullptr) {
    const std::string seen = c.why;
    from_log(c, evidence);
    c.why = fmt::format("{}; {}", c.why, seen);
  }
  return c;
}

}  // namespace rose::diagnose
