// Ends, pauses and silences that logs report.
#include <algorithm>
#include <utility>

#include "base/units.h"
#include "evidence/logs/hint_reader.h"
#include "weights/weights.h"

namespace rose::evidence {
namespace {

using logs::Hint;
using logs::kNoTime;
using trace::EventType;
using trace::ProcessState;

}  // namespace

void HintReader::find_restart_delay() {
  std::set<std::string> ended;
  std::int64_t shortest = 0;
  for (const Hint& hint : case_.evidence().hints) {
    if (!between_lives(hint)) continue;
    const std::int64_t down = hint.until_ns - hint.ts_ns;
    shortest = ended.empty() ? down : std::min(shortest, down);
    ended.insert(case_.node_of(hint.node));
  }
  if (ended.size() > 1) restart_delay_ = shortest;
}

bool HintReader::between_lives(const Hint& hint) const {
  return hint.kind == Hint::Kind::end && !hint.itself && !hint.reported && !hint.helper && !hint.missed &&
         hint.ts_ns != kNoTime && hint.until_ns != kNoTime && hint.until_ns > hint.ts_ns &&
         !case_.evidence().failure.nodes[hint.log].aligned;
}

void HintReader::add_end(const Hint& hint, const std::string& node, double weight) {
  // Place the end after everything else that the message reports, because that may be the cause of the end.
  const std::int64_t logged_ns = case_.time_of(hint);
  std::int64_t gone = gone_at(hint, node);
  const std::int64_t since = gone > logged_ns + kMessageToEnd ? logged_ns : 0;
  if (gone == logged_ns) gone += kMessageToEnd;
  Observation end = out_.observation(EventType::ps, node, gone);
  end.state = hint.signal != 0 ? ProcessState::crashed : ProcessState::exited;
  end.signal = static_cast<std::uint8_t>(hint.signal);
  end.exit_code = hint.exit_code;
  // If a child process ended, add a start of the main process, so that the observations show which process is the main
  // one.
  if (hint.helper && alive_.insert(node).second) out_.put_context(start(node, std::min(case_.first(), gone - 1)));
  end.flags = static_cast<decltype(end.flags)>((hint.helper ? 0 : trace::kMain) |
                                               (hint.out_of_memory ? trace::kOutOfMemory : 0));
  // The end is inferred in three cases: its evidence is a silence or the node's next start; the message does not name
  // the node; or everything continued as before.
  const bool inferred = (!hint.reported && !hint.itself) || hint.unnamed || hint.passing;
  const Origin origin = origin_of(hint, weight, inferred, since);
  out_.put(end, origin);
  if (hint.until_ns != kNoTime)
    out_.put(start(node, std::max(hint.until_ns, end.ts_ns + 1'000'000)), origin_of(hint, weight, false));
  if (hint.weight >= kLeastHint) out_.cut_off(node, end.ts_ns);
}

std::int64_t HintReader::gone_at(const Hint& hint, const std::string& node) const {
  const std::int64_t logged_ns = case_.time_of(hint);
  if (hint.itself || hint.reported || hint.missed) return logged_ns;
  std::int64_t gone = case_.latest(hint, node);
  if (!between_lives(hint)) return gone;
  // The end of a process closes its connections at once, so the process had ended when other nodes reported closed
  // connections.
  for (const Hint& other : case_.evidence().hints)
    if (other.kind == Hint::Kind::silence && other.closed && other.peer == node && other.ts_ns != kNoTime &&
        other.ts_ns > logged_ns && !case_.evidence().failure.nodes[other.log].aligned)
      gone = std::min(gone, other.ts_ns);
  return restart_delay_ != 0 ? std::max(gone, hint.until_ns - restart_delay_) : gone;
}

Observation HintReader::start(const std::string& node, std::int64_t ts) {
  Observation start = out_.observation(EventType::ps, node, ts);
  start.state = ProcessState::started;
  start.flags = trace::kMain;
  return start;
}

bool HintReader::refused_since(const std::string& node, std::int64_t ts) const {
  return std::any_of(case_.evidence().hints.begin(), case_.evidence().hints.end(), [&](const Hint& other) {
    const bool of_it = other.kind == Hint::Kind::silence
                           ? other.closed && other.peer == node
                           : other.kind == Hint::Kind::end && other.reported && other.node == node;
    return of_it && other.ts_ns != kNoTime && other.ts_ns >= ts;
  });
}

void HintReader::add_early_end(const Hint& hint, const std::string& node, double weight) {
  const config::Node* known = inputs_.config->find(node);
  const bool hangs =
      known != nullptr && known->restart && known->restart->max > 0 && !refused_since(node, case_.time_of(hint));
  add_end(hint, node, hangs ? weight * kOtherInterpretation : weight);
  if (hint.itself || with_dumps_) return;
  const std::int64_t since = case_.time_of(hint);
  put_stop(node, since, std::max(since + 1'000'000, case_.last()), trace::kOpen,
           origin_of(hint, hangs ? weight : weight * kOtherInterpretation, true));
}

void HintReader::add_stop(const Hint& hint, const std::string& node, double weight) {
  const std::int64_t since = case_.time_of(hint);
  const std::int64_t until = hint.until_ns != kNoTime ? hint.until_ns : since + hint.took_ns;
  const std::int64_t earliest = hint.since_ns == kNoTime ? 0 : hint.since_ns;
  put_stop(node, since, until, 0, origin_of(hint, weight, hint.missed || hint.passing, earliest));
}

void HintReader::put_stop(const std::string& node, std::int64_t since, std::int64_t until, unsigned flags,
                          Origin origin) {
  Observation stop = out_.observation(EventType::ps, node, until);
  stop.state = ProcessState::paused;
  stop.duration_ms = static_cast<std::int32_t>(std::min<std::int64_t>((until - since) / 1'000'000, 3'600'000));
  stop.flags = static_cast<decltype(stop.flags)>(trace::kMain | flags);
  out_.put(stop, std::move(origin));
}

void HintReader::add_silence(const Hint& hint, const std::string& node, double weight) {
  const std::int64_t logged_ns = case_.time_of(hint);
  std::int64_t begin = std::max(case_.first(), logged_ns - kNoticedAfter);
  // If the connection was closed by the end of the peer's process, the silence did not begin before that end.
  for (const Hint& other : case_.evidence().hints) {
    if (!hint.closed || !between_lives(other) || other.weight < kLeastReported ||
        case_.node_of(other.node) != hint.peer)
      continue;
    if (const std::int64_t gone = gone_at(other, hint.peer); gone > begin && gone <= logged_ns)
      begin = gone + kMessageToEnd;
  }
  const std::int64_t end = std::max(hint.until_ns != kNoTime ? hint.until_ns : begin, begin + kLeastSilence);
  out_.put_silence(node, hint.peer, begin, end, origin_of(hint, weight, hint.unnamed || hint.passing));
}

}  // namespace rose::evidence
