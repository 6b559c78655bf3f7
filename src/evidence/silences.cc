#include "evidence/silences.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/ports.h"
#include "base/units.h"
#include "evidence/forms.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

constexpr std::uint32_t kRhythm = 10;  // packets that are needed to estimate how often a pair communicates

// The longest usual time between two packets of the pair, so a silence may begin this long before its cause. It is
// estimated as ten times the average interval between packets, but at least 0.5 s and at most kHeartbeat.
std::int64_t heartbeat(const Event& event, const Silence& silence, const Times& times) {
  const std::int64_t exchanging_ns = silence.start - times.begin;
  // event.packets were exchanged since the connection began. So the interval can be estimated only if the dump contains
  // the whole run.
  if (times.workload == 0 || event.packets < kRhythm || exchanging_ns <= 0) return kHeartbeat;
  return std::clamp<std::int64_t>(10 * (exchanging_ns / event.packets), kSecond / 2, kHeartbeat);
}

// The only node whose `ready` check uses this port; -1: none, -2: several.
int owner_of_port(std::uint16_t port, const Given& given) {
  int owner = -1;
  for (int i = 0; port != 0 && i < given.nodes.count(); ++i) {
    const config::Node& node = given.config().nodes[static_cast<std::size_t>(i)];
    if (node.ready && node.ready->tcp == port) owner = owner == -1 ? i : -2;
  }
  return owner;
}

// The two ends of a silence, as in Silence.
struct Sides {
  int src = NodeMap::kNone;
  int dst = NodeMap::kNone;
  std::uint16_t port = 0;
  std::string left_out;  // for people: why the silence is not evidence; "": it is between two nodes
};

// The two ends of the silence that the event records.
Sides sides_of(std::size_t s, const Observation& event, const Given& given) {
  const Source& source = given.inputs.sources[s];
  const std::string_view src = source.str(event.src);
  const std::string_view dst = source.str(event.dst);
  const int receiver = given.nodes.network_of(given.nodes.of(s, event));
  Sides found;
  found.src = event.src == 0 ? NodeMap::kNone : given.nodes.network_of(given.nodes.of_address(src));
  found.dst = event.dst == 0 ? NodeMap::kNone : given.nodes.network_of(given.nodes.of_address(dst));
  if (found.dst == NodeMap::kShared || (event.dst == 0 && receiver >= 0)) found.dst = receiver;
  if (found.src == NodeMap::kShared) {
    // Nodes share the address, so only the port of a service identifies the node.
    const int sender = owner_of_port(event.sport, given);
    if (sender >= 0 && sender != found.dst && found.dst >= 0) {
      found.src = sender;
      found.port = event.sport;
    } else if (found.dst >= 0 && event.dport != 0 && owner_of_port(event.dport, given) == found.dst) {
      found.src = -1;
      found.port = event.dport;
      return found;
    } else {
      found.left_out = "silences between nodes that share one address and cannot be distinguished";
      return found;
    }
  }
  if (found.src >= 0 && found.dst >= 0 && found.src != found.dst) return found;
  const std::string_view other = found.src < 0 ? src : dst;
  if (found.src >= 0 && found.src == found.dst) found.left_out = "silences of a node with itself";
  else if (other.empty()) found.left_out = "silences without an address";
  else
    found.left_out = fmt::format(
        "silences with {}, which is not a node of the deployment: only nodes can be cut off from each other, so if a "
        "client has to be cut off, make the client a node",
        other);
  return found;
}

// What the profile contains for two nodes and one service: no similar silence (`no`), a silence that is at least as
// long, or a silence that lasted until the end of a run.
enum class Usual { no, as_long, without_end };

Usual usual_silence(const Source& source, const Observation& event, const Silence& silence, const Given& given) {
  Usual usual = Usual::no;
  // A log message that reports a silence names a peer, not a connection. So the silence cannot be compared with those
  // of the profile.
  if (!given.inputs.profile || !event.seen()) return usual;
  for (const profile::Silence& known : given.inputs.profile->silences) {
    // Compare only silences of the same service: that one connection of the pair is often idle does not make a silence
    // of a busy connection benign.
    if (!known.is_of(event.sport, event.dport)) continue;
    const bool by_name = known.src == given.name(silence.src) && known.dst == given.name(silence.dst);
    const bool by_address = known.src == source.str(event.src) && known.dst == source.str(event.dst);
    if (!by_name && !by_address) continue;
    // If it is unknown whether a message remained unanswered, compare with idle times as well.
    const std::int64_t longest =
        (event.flags & trace::kOutstanding) != 0 ? known.longest_ms : std::max(known.longest_ms, known.idle_ms);
    // Tolerate 10 %, because timers are inexact.
    if ((silence.end - silence.start) / kMillisecond <= longest + longest / 10) return Usual::as_long;
    if (known.open) usual = Usual::without_end;
  }
  return usual;
}

// The index of the earliest cause (an end or pause of one of the two nodes) with which the silence begins, so that the
// silence is not a network fault; nullopt if there is no such cause. `by`: the node whose log reports the silence;
// kNone if a tracer recorded it. `rhythm`: see heartbeat().
std::optional<std::size_t> cause_of(const Silence& silence, int by, std::int64_t rhythm,
                                    const std::vector<Cause>& causes, const NodeMap& nodes) {
  std::optional<std::size_t> cause;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    const Cause& c = causes[i];
    if (const int network = nodes.network_of(c.node); network != silence.src && network != silence.dst) continue;
    if (silence.start < c.start - rhythm || silence.start > (c.end == kNever ? kNever : c.end + kHeartbeat)) continue;
    if (silence.end < c.start) continue;
    // A guess explains nothing: neither a silence that logs report, nor another guess.
    if (c.plainness < kLeastReported) continue;
    // If a node reports a silence and then ends itself, the silence caused the end, not the end the silence.
    if (c.kind == CauseKind::ended_itself && c.node == by && c.start >= silence.start) continue;
    // If other processes of the node continued, and the pair still communicated after the end, the connection did not
    // belong to the process that ended.
    if (c.partly && silence.start > c.start + rhythm) continue;
    if (!cause || c.start < causes[*cause].start) cause = i;
  }
  return cause;
}

// The node whose log reports the silence of this event; kNone if none does.
int reporter(const Given& given, const Observation& event) {
  const std::string& by = event.how().by;
  for (int i = 0; !by.empty() && i < given.nodes.count(); ++i)
    if (given.config().nodes[static_cast<std::size_t>(i)].name == by) return i;
  return NodeMap::kNone;
}

// A silence between two nodes, with the index of its source, and its event.
struct RecordedSilence {
  std::size_t source = 0;
  const Observation* event = nullptr;
  Silence silence;
};

Silence silence_of(const Event& event, const Sides& nodes, const Given& given, const Times& times) {
  const auto within = [](std::int32_t ms) { return ms < 0 ? -1 : ms * kMillisecond; };
  Silence silence;
  silence.src = nodes.src;
  silence.dst = nodes.dst;
  silence.port = nodes.port;
  silence.events = weight_of(event);
  silence.start = event.ts_ns - (event.duration_ms >= 0 ? event.duration_ms * kMillisecond : given.network_threshold());
  const bool open = (event.flags & trace::kOpen) != 0;
  silence.open = open;
  silence.packets = event.packets;
  silence.end = open ? std::max(event.ts_ns, times.end) : event.ts_ns;
  silence.begin_within = within(event.begin_within_ms);
  silence.end_within = open ? -1 : within(event.end_within_ms);
  silence.idle = (event.flags & trace::kIdle) != 0;
  // Of a client's port, the dump has only that it was chosen (0).
  silence.from_service =
      event.sport != 0 && event.sport < kFirstClientPort && (event.dport == 0 || event.dport >= kFirstClientPort);
  return silence;
}

bool overlap(const Silence& a, const Silence& b) {
  const std::int64_t both = std::min(a.end, b.end) - std::max(a.start, b.start);
  return both > 0 && 2 * both >= std::min(a.end - a.start, b.end - b.start);
}

// True if the other end of the connection waited for an answer at the same time. The idle end of a connection does not
// notice a partition.
bool seen_from_other_end(const Silence& idle, const std::vector<RecordedSilence>& all) {
  return std::any_of(all.begin(), all.end(), [&](const RecordedSilence& other) {
    return (other.event->flags & trace::kOutstanding) != 0 &&
           std::minmax(other.silence.src, other.silence.dst) == std::minmax(idle.src, idle.dst) &&
           overlap(idle, other.silence);
  });
}

// Collects idle connections by pair, to report how long they were idle and how long they usually are.
class Idle {
 public:
  void add(const RecordedSilence& recorded, const Given& given) {
    Of& of = pairs_[std::minmax(recorded.silence.src, recorded.silence.dst)];
    const auto [first, second] = std::minmax(recorded.silence.src, recorded.silence.dst);
    of.words = fmt::format("{} and {}", first < 0 ? "unknown senders" : given.name(first), given.name(second));
    of.events += recorded.silence.events;
    of.longest = std::max(of.longest, recorded.silence.end - recorded.silence.start);
    of.usual = std::max(of.usual, std::int64_t{recorded.event->usual_ms} * kMillisecond);
  }
  void add_to(Discards& discards) const {
    for (const auto& [nodes, of] : pairs_)
      discards.add(
          fmt::format("idle: nothing was unanswered between {} for up to {}{}", of.words,
                      format_duration(rounded(of.longest)),
                      of.usual > 0 ? fmt::format(" (usually up to {})", format_duration(rounded(of.usual))) : ""),
          of.events);
  }

 private:
  struct Of {
    std::string words;
    std::uint64_t events = 0;
    std::int64_t longest = 0, usual = 0;
  };
  std::map<std::pair<int, int>, Of> pairs_;
};

// For each node that owns a network: the time of the last event of the nodes in this network. Silences do not count.
std::vector<std::int64_t> last_active(const Given& given) {
  std::vector<std::int64_t> last(static_cast<std::size_t>(given.nodes.count()), 0);
  for (std::size_t s = 0; s < given.inputs.sources.size(); ++s)
    for (const Observation& event : given.inputs.sources[s].observations) {
      if (event.type == EventType::nd) continue;
      if (const int node = given.nodes.network_of(given.nodes.of(s, event)); node >= 0)
        last[static_cast<std::size_t>(node)] = std::max(last[static_cast<std::size_t>(node)], event.ts_ns);
    }
  return last;
}

}  // namespace

SortedSilences sort_silences(const Given& given, const Facts& facts, const std::vector<Cause>& causes) {
  const Times& times = facts.times;
  SortedSilences sorted;
  std::vector<RecordedSilence> all;
  for (const auto& [s, event] : facts.silences) {
    const Sides nodes = sides_of(s, *event, given);
    if (nodes.left_out.empty()) all.push_back({s, event, silence_of(*event, nodes, given, times)});
    else sorted.discards.add(nodes.left_out, weight_of(*event));
  }
  Idle idle;
  std::optional<std::vector<std::int64_t>> active;
  for (const RecordedSilence& recorded : all) {
    const auto& [s, event, silence] = recorded;
    const std::uint64_t weight = silence.events;
    if (silence.idle && !seen_from_other_end(silence, all)) {
      idle.add(recorded, given);
      continue;
    }
    const Usual usual = silence.src >= 0 ? usual_silence(given.inputs.sources[s], *event, silence, given) : Usual::no;
    if (usual == Usual::as_long) {
      sorted.discards.add("benign: the profile contains silences as long between these nodes", weight);
      continue;
    }
    if (silence.src >= 0 && silence.open && silence.start <= times.begin + kSecond &&
        times.end - times.begin > 2 * kSecond && event->packets == 1) {
      sorted.discards.add("idle: nothing was sent between these nodes in the whole dump", weight);
      continue;
    }
    const std::optional<std::size_t> cause =
        cause_of(silence, reporter(given, *event), heartbeat(*event, silence, times), causes, given.nodes);
    if (cause && causes[*cause].kind == CauseKind::planned) {
      sorted.discards.add("silences that a planned stop explains", weight);
    } else if (cause) {
      sorted.explained[*cause].push_back(silence);
    } else if (usual == Usual::without_end) {
      sorted.idle.push_back(silence);
    } else {
      // The workload had probably ended if the silence has not ended, it is unknown whether a message remained
      // unanswered, and all other activity of the two nodes ended when the silence began.
      bool alone = true;
      if (silence.open && (event->flags & (trace::kOutstanding | trace::kIdle)) == 0 && event->seen() &&
          silence.src >= 0) {
        if (!active) active = last_active(given);
        const std::int64_t last = std::max((*active)[static_cast<std::size_t>(silence.src)],
                                           (*active)[static_cast<std::size_t>(silence.dst)]);
        alone = last == 0 || last > silence.start + kHeartbeat;
      }
      (alone ? sorted.unexplained : sorted.with_all_else).push_back(silence);
    }
  }
  idle.add_to(sorted.discards);
  return sorted;
}

}  // namespace rose::evidence
