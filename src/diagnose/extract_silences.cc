#include "diagnose/extractor.h"

#include "base/units.h"
#include "diagnose/thresholds.h"

namespace rose::diagnose {
namespace {

constexpr std::int64_t kOfOneProcess = 60 * kSecond;  // silences that the end of one of a node's processes makes begin within this
constexpr std::size_t kMostPorts = 16;  // of one partition
constexpr std::uint32_t kRhythm = 10;   // packets that show how often a pair speaks

}  // namespace

void Extractor::network() {
  std::vector<Silence> silences;
  std::vector<Silence> idle;                              // longer than a fault-free run, which had them to its end
  std::map<std::size_t, std::vector<Silence>> explained;  // cause -> silences
  for (const auto& [s, event] : silences_) {
    const trace::Trace& trace = inputs_.traces[s];
    const std::uint64_t weight = weight_of(*event);
    Silence silence;
    silence.events = weight;
    silence.end = event->ts_ns;
    const std::int64_t length = event->duration_ms >= 0 ? event->duration_ms * kMs : network_threshold();
    silence.start = event->ts_ns - length;
    const bool open = (event->flags & trace::kOpen) != 0;
    if (open) silence.end = std::max(silence.end, plan_.end_ts);

    if (!endpoints(s, trace, *event, silence)) continue;
    const Usual usual = silence.src >= 0 ? usual_silence(trace, *event, silence) : Usual::no;
    if (usual == Usual::as_long) {
      discard("benign: the profile shows silences as long between these nodes", weight);
      continue;
    }
    if (silence.src >= 0 && open && silence.start <= plan_.begin_ts + kSecond && plan_.end_ts - plan_.begin_ts > 2 * kSecond &&
        event->packets == 1) {
      discard("idle: nothing was sent between these nodes in the whole dump", weight);
      continue;
    }
    // A silence that begins with the end or pause of either side is no fault of the network.
    const std::int64_t early = heartbeat(*event, silence);
    const std::size_t none = causes_.size();
    std::size_t cause = none;
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      const Cause& c = causes_[i];
      if (c.node != silence.src && c.node != silence.dst) continue;
      if (silence.start < c.start - early || silence.start > (c.end == kNever ? kNever : c.end + kHeartbeat)) continue;
      if (silence.end < c.start) continue;
      // The others of its node lived on, and the pair spoke until now.
      if (c.partly && silence.start > c.start + kOfOneProcess) continue;
      if (cause == none || c.start < causes_[cause].start) cause = i;
    }
    if (cause == none && usual == Usual::without_end) {
      idle.push_back(silence);
    } else if (cause == none) {
      silences.push_back(silence);
    } else if (causes_[cause].kind == CauseKind::planned) {
      discard("silences that a planned stop explains", weight);
    } else {
      explained[cause].push_back(silence);
    }
  }

  const std::vector<bool> watched = watched_nodes();
  for (const auto& [cause, group] : explained) {
    const std::string because = causes_[cause].words;
    for (const Cut& cut : find_cuts(group, watched)) {
      Candidate& c = add_cut(cut);
      c.symptom = true;
      c.why += fmt::format("; {} explains it", because);
    }
  }
  for (const Cut& cut : find_cuts(std::move(idle), watched)) {
    Candidate& c = add_cut(cut);
    c.symptom = true;
    c.why += "; without faults they are silent until the end, too";
  }
  order_causes();
  const auto cuts_of = [&](std::vector<Silence> found) {
    const std::size_t known = causes_.size();
    for (const Cut& cut : find_cuts(std::move(found), watched)) {
      if (!cut.silent && !believable(cut)) continue;
      const Candidate& c = add_cut(cut);
      if (c.said < kHalfSaid) continue;  // too little to explain anything by it
      causes_.push_back({CauseKind::cut, cut.node, cut.all_others ? std::vector<int>{} : cut.peers, cut.start, cut.end,
                         fmt::format("the cut of {} ({})", c.node, at(cut.start))});
    }
    if (causes_.size() > known) order_causes();
  };
  const std::vector<Contact> between = contacts();
  for (Silence& one : unreachable(between, true)) silences.push_back(std::move(one));
  cuts_of(std::move(silences));
  cuts_of(unreachable(between, false));
}

std::int64_t Extractor::heartbeat(const Event& event, const Silence& silence) const {
  const std::int64_t spoken = silence.start - plan_.begin_ts;
  // Only a dump that holds the whole run says how long the packets took that it counted.
  if (plan_.workload_ts == 0 || event.packets < kRhythm || spoken <= 0) return kHeartbeat;
  return std::clamp<std::int64_t>(10 * (spoken / event.packets), kSecond / 2, kHeartbeat);
}

std::vector<bool> Extractor::watched_nodes() const {
  std::vector<bool> watched;
  for (int i = 0; i < nodes_.count(); ++i) watched.push_back(nodes_.watched(i));
  return watched;
}

bool Extractor::endpoints(std::size_t s, const trace::Trace& trace, const Event& event, Silence& silence) {
  const std::string_view src = trace.str(event.src);
  const std::string_view dst = trace.str(event.dst);
  const int receiver = nodes_.of(s, event);
  silence.src = event.src == 0 ? NodeMap::kNone : nodes_.of_address(src);
  silence.dst = event.dst == 0 ? NodeMap::kNone : nodes_.of_address(dst);
  if (silence.dst == NodeMap::kShared || (event.dst == 0 && receiver >= 0)) silence.dst = receiver;
  if (silence.src == NodeMap::kShared) {
    // One address for all: the port of a service tells who is meant.
    const int sender = owner_of_port(event.sport);
    if (sender >= 0 && sender != silence.dst && silence.dst >= 0) {
      silence.src = sender;
      silence.port = event.sport;
    } else if (silence.dst >= 0 && event.dport != 0 && owner_of_port(event.dport) == silence.dst) {
      silence.src = -1;
      silence.port = event.dport;
      return true;
    } else {
      discard("silences between nodes that share one address and cannot be told apart", silence.events);
      return false;
    }
  }
  if (silence.src >= 0 && silence.dst >= 0 && silence.src != silence.dst) return true;
  if (silence.src >= 0 && silence.src == silence.dst) {
    discard("silences of a node with itself", silence.events);
    return false;
  }
  const std::string_view other = silence.src < 0 ? src : dst;
  discard(other.empty() ? std::string("silences without an address")
                        : fmt::format("silences with {}, which is no node of the deployment (a client?)", other),
          silence.events);
  return false;
}

int Extractor::owner_of_port(std::uint16_t port) const {
  int owner = -1;
  for (int i = 0; port != 0 && i < nodes_.count(); ++i) {
    const config::Node& node = config_.nodes[static_cast<std::size_t>(i)];
    if (node.ready && node.ready->tcp == port) owner = owner == -1 ? i : -2;
  }
  return owner;
}

Extractor::Usual Extractor::usual_silence(const trace::Trace& trace, const Event& event, const Silence& silence) const {
  Usual usual = Usual::no;
  if (!inputs_.profile) return usual;
  const int port = event.dport != 0 ? event.dport : event.sport;
  for (const profile::Silence& known : inputs_.profile->silences) {
    // A pair's idle connections don't excuse its busy ones.
    if (known.port != 0 && port != 0 && known.port != port) continue;
    const bool by_name = known.src == name(silence.src) && known.dst == name(silence.dst);
    const bool by_address = known.src == trace.str(event.src) && known.dst == trace.str(event.dst);
    if (!by_name && !by_address) continue;
    // A tenth for timers that are not exact.
    if ((silence.end - silence.start) / kMs <= known.longest_ms + known.longest_ms / 10) return Usual::as_long;
    if (known.open) usual = Usual::without_end;
  }
  return usual;
}

Candidate& Extractor::add_cut(const Cut& cut) {
  Fault fault;
  fault.kind = FaultKind::partition;
  fault.node = name(cut.node);
  fault.id = unique_id("cut-" + name(cut.node));
  fault.direction = cut.direction;
  fault.ports = cut.ports;
  if (fault.ports.size() > kMostPorts) fault.ports.resize(kMostPorts);
  fault.duration_ns = rounded(cut.duration);
  std::string others;
  for (const int peer : cut.peers) others += fmt::format("{}{}", others.empty() ? "" : ", ", name(peer));
  if (!cut.all_others)
    for (const int peer : cut.peers) fault.peers.push_back(name(peer));
  const Fault base = fault;
  // The calls are candidates of their own, too: there they are counted.
  Candidate& c = add(FaultKind::partition, cut.node, std::move(fault), cut.events, cut.start);
  c.last_ts = cut.end;
  const char* way = cut.direction == schedule::Direction::in    ? "nothing reached {0} from {1}"
                    : cut.direction == schedule::Direction::out ? "nothing reached {1} from {0}"
                                                                : "silence between {0} and {1}";
  c.why = fmt::format("{} for {}, from {}", fmt::format(fmt::runtime(way), name(cut.node), others.empty() ? "all others" : others),
                      format_duration(rounded(cut.duration)), at(cut.start));
  if (!cut.silent) {
    c.said = cut.plain;
    c.why = fmt::format("{} calls between {} and {} failed as unreachable in {}, from {}", cut.calls, name(cut.node),
                        others.empty() ? "all others" : others, format_duration(rounded(cut.duration)), at(cut.start));
  } else if (cut.calls > 0) {
    c.why += fmt::format("; {} calls across it failed as unreachable", cut.calls);
  }
  c.peer = others;
  for (const auto& [s, event] : silences_) {
    const trace::Trace& trace = inputs_.traces[s];
    if (said(*event) == nullptr) continue;
    const int src = nodes_.of_address(trace.str(event->src)), dst = nodes_.of_address(trace.str(event->dst));
    const int other = src == cut.node ? dst : dst == cut.node ? src : -1;
    if (std::find(cut.peers.begin(), cut.peers.end(), other) == cut.peers.end()) continue;
    const std::string seen = c.why;
    from_log(c, *event);
    c.why = fmt::format("{}; {}", c.why, seen);
    break;
  }
  // Only pairs that talk fall silent: the cut may have gone further than the dump can show.
  if (cut.direction != schedule::Direction::both) {
    Fault both = base;
    both.direction = schedule::Direction::both;
    c.alternatives.push_back(std::move(both));
  }
  if (!cut.silent && cut.direction == schedule::Direction::both && cut.failed_at == std::vector<int>{cut.node}) {
    Fault out = base;  // nobody else says that he could not reach it
    out.direction = schedule::Direction::out;
    c.alternatives.push_back(std::move(out));
  }
  if (!base.peers.empty()) {
    Fault wide = base;
    wide.peers.clear();
    c.alternatives.push_back(wide);
    if (cut.peers.size() == 1) {
      wide.node = name(cut.peers[0]);
      wide.id += "-other";
      if (wide.direction != schedule::Direction::both)
        wide.direction = wide.direction == schedule::Direction::in ? schedule::Direction::out : schedule::Direction::in;
      c.alternatives.push_back(std::move(wide));
    }
  }
  return c;
}

}  // namespace rose::diagnose
