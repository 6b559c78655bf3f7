#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "logs/hint/findings.h"

namespace rose::logs {
namespace {

constexpr double kPausedOrCut = 0.75;  // factor: the node may have been paused instead of partitioned
// Other nodes usually report a missing node within this time, so a last message from much earlier does not show when
// the node went missing.
constexpr std::int64_t kNoticedWithin = 2 * kSecond;
// Two nodes that lose their connection notice it within this time of each other.
constexpr std::int64_t kNoticedTogether = kSecond;

// if other nodes miss a node, a shorter silence of that node is no evidence
constexpr std::int64_t kLeastSilentTime = kSecond;
// The assumed length of a pause that other nodes notice: they usually do not notice shorter ones.
constexpr std::int64_t kAssumedPause = 10 * kSecond;

constexpr std::size_t kExcerpt = 3;  // a log with at most this many messages is an excerpt
// factor: the process of the missed node may have ended, because nothing shows that it survived
constexpr double kEndedOrCut = 0.7;
// Factors for an end and for a pause, if no connection to the missed node was refused or closed. After the end of a
// process, its machine refuses or closes connections, unless the machine fails, too. So without a refused or closed
// connection, the silence may also be a partition or a pause. Therefore the weight of the silence (kMissedByOthers)
// times these factors is below the weight from which diagnose lets a hint explain other hints (kLeastReported).
constexpr double kEndedUnanswered = 0.48;
constexpr double kPausedUnanswered = 0.45;
// The same for an end if the host is unreachable (EHOSTUNREACH): nothing answers at the address of a container that was
// removed or of a machine that is off. The end of a process alone does not explain it.
constexpr double kEndedUnreachable = 0.3;
// The same for a pause if no message reports a timeout. A failure detector that reports a peer as unreachable or lost
// also waited for it, but some programs report a peer that left on request in the same words. Only for a peer that is
// missed alone, because several nodes rarely stand still in one outage.
constexpr double kPausedGone = 0.25;

// True if the node's log has too few messages to decide whether the node went on.
bool is_excerpt(const NodeLog& log) { return log.messages.size() <= kExcerpt || !is_timed(log); }

// True if the node's log shows that the node survived, or has too few messages to decide. Several messages after `ts`
// are proof, because inaccurate clocks do not explain them.
bool lives_on(const Findings& found, const std::string& name, std::int64_t ts) {
  const NodeLog* log = found.log_of(name);
  if (log == nullptr) return false;
  const std::vector<Message>& all = log->messages;
  return is_excerpt(*log) || all.back().ts_ns > ts + kEarlyEnd || all[all.size() - 2].ts_ns > ts + kNoticedTogether;
}

// True if the node's log begins with the same message as in the run without faults, that is, with the program's start,
// and goes on after `ts` without another start. A process that ended at `ts` writes nothing more, and the next process
// would begin in the same way.
bool goes_on_without_start(const Findings& found, const std::string& name, std::int64_t ts) {
  // largest difference between the clocks of synchronised hosts, with a margin
  constexpr std::int64_t kClocksApart = kSecond / 2;
  const NodeLog* log = found.log_of(name);
  if (log == nullptr || ts == kNoTime || !is_timed(*log) || log->messages.size() <= kExcerpt) return false;
  const auto number = static_cast<std::size_t>(log - found.failure.nodes.data());
  const NodeLog* normal = found.normal_log(number);
  if (normal == nullptr || normal->messages.empty() || normal->messages.front().kind != log->messages.front().kind)
    return false;
  const auto after = [&](const Message& message) { return message.ts_ns > ts + kClocksApart; };
  const auto next = std::find_if(log->messages.begin(), log->messages.end(), after);
  return next != log->messages.begin() && next != log->messages.end() &&
         std::none_of(next, log->messages.end(),
                      [&](const Message& message) { return message.kind == log->messages.front().kind; });
}

// True if the missing node itself reports a lost connection at that time or right after it. A process that ended can
// report nothing, so the process was still running: the network, or a device in it, broke the connection, and both
// sides noticed. The last messages of a process that ends for another reason come before its peers miss it.
bool reports_it_too(const Findings& found, const std::string& name, const Hint& silence) {
  if (silence.ts_ns == kNoTime) return false;
  const NodeLog* log = found.log_of(name);
  return std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
    if (hint.log == kNoNode || &found.node(hint.log) != log || hint.ts_ns == kNoTime) return false;
    const bool lost = hint.kind == Hint::Kind::silence ||
                      (hint.kind == Hint::Kind::call && (hint.error == ECONNRESET || hint.error == ECONNABORTED ||
                                                         hint.error == EPIPE || hint.error == ETIMEDOUT));
    return lost && hint.ts_ns >= silence.ts_ns && hint.ts_ns - silence.ts_ns <= kNoticedTogether;
  });
}

// The number of nodes that the node of this hint misses at about that time. Several nodes rarely end at once.
std::size_t missed_together(const Findings& found, const Hint& silence) {
  std::set<std::string> all;
  for (const Hint& hint : found.hints)
    if (hint.kind == Hint::Kind::silence && hint.node == silence.node && !hint.peer.empty() && !hint.unnamed &&
        hint.ts_ns != kNoTime && std::abs(hint.ts_ns - silence.ts_ns) <= kNoticedTogether)
      all.insert(hint.peer);
  return std::max<std::size_t>(all.size(), 1);
}

// If the node writes a message after others missed it, its pause ended by then. The pause began at the node's previous
// message, or kNoticedWithin before others missed the node if that is later.
void bound_pause(const Findings& found, const std::string& name, Hint& stop) {
  const NodeLog* log = found.log_of(name);
  if (log == nullptr || !is_timed(*log) || stop.ts_ns == kNoTime) return;
  const auto next = std::upper_bound(log->messages.begin(), log->messages.end(), stop.ts_ns,
                                     [](std::int64_t ts, const Message& message) { return ts < message.ts_ns; });
  if (next == log->messages.begin() || next == log->messages.end()) return;
  const std::int64_t since = std::max((next - 1)->ts_ns, stop.ts_ns - kNoticedWithin);
  if (next->ts_ns - since < kLeastSilentTime || next->ts_ns - since > kAssumedPause) return;
  stop.took_ns = 0;
  stop.ts_ns = since;
  if ((next - 1)->ts_ns < since) stop.since_ns = (next - 1)->ts_ns;
  stop.until_ns = next->ts_ns;
  stop.words +=
      fmt::format(", until it writes again {} later", format_duration((next->ts_ns - since) / 1'000'000 * 1'000'000));
}

// Adds a pause of a node that misses most of the other nodes at once, because that node was probably partitioned or
// paused itself.
void add_isolated(Findings& found) {
  constexpr std::size_t kLeastMissed = 3;
  // Key: a node; value: the number of nodes that it misses, and the index of its first hint.
  std::map<std::string, std::pair<std::size_t, std::size_t>> lonely;
  for (std::size_t i = 0; i < found.hints.size(); ++i)
    if (const Hint& hint = found.hints[i];
        hint.kind == Hint::Kind::silence && !hint.unnamed && !hint.closed && !lonely.contains(hint.node))
      lonely.try_emplace(hint.node, missed_together(found, hint), i);
  for (const auto& [name, missed] : lonely) {
    const auto& [count, i] = missed;
    if (name.empty() || count < kLeastMissed || count * 2 <= found.names.size() - 1) continue;
    const bool stands = std::any_of(found.hints.begin(), found.hints.end(), [&, &name = name](const Hint& hint) {
      return hint.kind == Hint::Kind::stop && hint.node == name;
    });
    if (stands) continue;
    const Hint silence = found.hints[i];
    Hint& stop = found.add(Hint::Kind::stop, silence.log, found.node(silence.log).messages[silence.message],
                           kPausedUnanswered * silence.weight);
    stop.node = name;
    stop.took_ns = kAssumedPause;
    stop.missed = true;
    stop.words += fmt::format("; {} misses {} others at once", name, count);
  }
}

}  // namespace

// Assumption: the gaps in a long log vary within a range. Goal: a report by a single node suffices if the log of the
// missed node has by far its longest gap at that time. Derivation: the log has at least kLongLog messages, so the
// second longest gap is the longest of hundreds of ordinary ones. A gap that is several times as long is not ordinary.
bool is_unusual_gap(const NodeLog& log, std::size_t after) {
  constexpr std::size_t kLongLog = 200;
  constexpr std::int64_t kTimesTheLongest = 3;
  if (log.messages.size() < kLongLog || after == 0) return false;
  std::int64_t longest = kSecond;
  for (std::size_t i = 1; i < log.messages.size(); ++i)
    if (i != after) longest = std::max(longest, log.messages[i].ts_ns - log.messages[i - 1].ts_ns);
  return log.messages[after].ts_ns - log.messages[after - 1].ts_ns >= kTimesTheLongest * longest;
}

// If others miss a node, and it shows no sign of life afterwards, its process may have ended, or the node may have been
// partitioned or paused.
void find_missed_ends(Findings& found) {
  std::map<std::string, std::size_t> missed;  // key: the missing node; value: the hint with the greatest weight
  for (std::size_t i = 0; i < found.hints.size(); ++i) {
    const Hint& hint = found.hints[i];
    if (hint.kind != Hint::Kind::silence || hint.peer.empty()) continue;
    // Without a route, or without a name that resolves, the packets do not even reach the network of the peer.
    if (hint.unreachable && (hint.no_route || hint.unnamed)) continue;
    const auto [first, fresh] = missed.try_emplace(hint.peer, i);
    if (!fresh && hint.weight > found.hints[first->second].weight) first->second = i;
  }
  for (const auto& [name, i] : missed) {
    const Hint silence = found.hints[i];
    const bool reported = std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.kind == Hint::Kind::end && hint.node == name;
    });
    // If nodes report that partitioned nodes are connected again, a node that was missing had not ended.
    const bool lives = lives_on(found, name, silence.ts_ns);
    const NodeLog* log = found.log_of(name);
    if (reported || (found.reunited && !silence.closed) || (lives && !is_excerpt(*log)) ||
        reports_it_too(found, name, silence))
      continue;
    const auto any_says = [&, &name = name](bool Hint::* what) {
      return std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
        return hint.kind == Hint::Kind::silence && hint.*what && hint.peer == name;
      });
    };
    const bool unanswered = !any_says(&Hint::answered), timed_out = any_says(&Hint::timed_out);
    const Message& message = found.node(silence.log).messages[silence.message];
    const bool stands = std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.kind == Hint::Kind::stop && hint.node == name;
    });
    const bool gone_alone =
        !silence.closed && std::all_of(missed.begin(), missed.end(), [&, &name = name](auto& other) {
          return other.first == name || found.hints[other.second].node != silence.node;
        });
    if (unanswered && !stands && !silence.unreachable && (timed_out || gone_alone)) {
      Hint& stop = found.add(Hint::Kind::stop, silence.log, message,
                             (timed_out ? kPausedUnanswered : kPausedGone) * silence.weight);
      stop.node = name;
      stop.took_ns = kAssumedPause;
      stop.missed = true;
      stop.words += fmt::format("; {} may have stood still", name);
      bound_pause(found, name, stop);
    }
    if (lives || found.divided || goes_on_without_start(found, name, silence.ts_ns)) continue;
    // A process that ends closes its connections, and a partition does not. If the message names the peer, diagnose
    // lets the end explain the silence. Otherwise the weight of the end is too low for that, so the weight of the
    // silence is lowered instead of that of the end.
    const bool closed_by_unnamed = silence.closed && silence.unnamed;
    const double ended = closed_by_unnamed         ? 1
                         : silence.unreachable     ? kEndedUnreachable
                         : unanswered && timed_out ? kEndedUnanswered
                                                   : kEndedOrCut;
    if (closed_by_unnamed) found.hints[i].weight *= kEndedOrCut;
    Hint& hint = found.add(Hint::Kind::end, silence.log, message,
                           ended * silence.weight / static_cast<double>(missed_together(found, silence)));
    hint.node = name;
    hint.signal = SIGKILL;
    hint.missed = true;
    hint.words += fmt::format("; nothing shows that {} went on running", name);
  }
  add_isolated(found);
}

// If all other nodes miss a node, and it logs nothing during that time, it may have been paused. A partitioned node
// would usually report that it misses the others.
void find_missed(Findings& found) {
  // Key: the missing node; value: the nodes that miss it, with their hints.
  std::map<std::string, std::map<std::string, std::size_t>> missed;
  for (std::size_t i = 0; i < found.hints.size(); ++i)
    if (const Hint& hint = found.hints[i];
        hint.kind == Hint::Kind::silence && hint.weight >= kLogGap && hint.ts_ns != kNoTime)
      missed[hint.peer].emplace(hint.node, i);
  for (const auto& [name, by] : missed) {
    if (by.empty()) continue;
    // The machine of a paused node answers, so an unreachable node was not paused.
    if (std::any_of(by.begin(), by.end(), [&](const auto& entry) { return found.hints[entry.second].unreachable; }))
      continue;
    const auto earlier = [&](const auto& a, const auto& b) {
      return found.hints[a.second].ts_ns < found.hints[b.second].ts_ns;
    };
    const Hint first = found.hints[std::min_element(by.begin(), by.end(), earlier)->second];
    const NodeLog* here = found.log_of(name);
    if (here == nullptr || !is_timed(*here)) continue;
    const auto next = std::upper_bound(here->messages.begin(), here->messages.end(), first.ts_ns,
                                       [](std::int64_t ts, const Message& message) { return ts < message.ts_ns; });
    if (next == here->messages.begin() || next == here->messages.end()) continue;
    const std::int64_t since = std::max((next - 1)->ts_ns, first.ts_ns - kNoticeTime);
    if (next->ts_ns - since < kLeastSilentTime) continue;
    if (by.size() + 1 < found.names.size() &&
        !is_unusual_gap(*here, static_cast<std::size_t>(next - here->messages.begin())))
      continue;
    const auto begins = [&](Hint& hint, std::int64_t earliest) {
      hint.ts_ns = std::max(earliest, first.ts_ns - kNoticedWithin);
      if (earliest < hint.ts_ns) hint.since_ns = earliest;
    };
    // If both sides report a timeout at the same time, they were partitioned. A node that was paused reports the
    // timeout when it continues, which may be at any time.
    const bool at_once = next->ts_ns - first.ts_ns < kNoticedTogether;
    const bool misses_others = std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.kind == Hint::Kind::silence && hint.node == name && hint.ts_ns >= first.ts_ns - kNoticeTime &&
             (hint.ts_ns < next->ts_ns || (at_once && hint.ts_ns == next->ts_ns));
    });
    if (misses_others) continue;
    const double weight = kPausedOrCut * first.weight;
    const auto reported = std::find_if(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.node == name &&
             ((hint.kind == Hint::Kind::end && hint.ts_ns < next->ts_ns) ||
              (hint.kind == Hint::Kind::stop && hint.ts_ns <= first.ts_ns && hint.until_ns > first.ts_ns));
    });
    if (reported != found.hints.end()) {
      if (reported->kind == Hint::Kind::stop) {
        reported->weight = std::max(reported->weight, weight);
        begins(*reported, reported->ts_ns);
      }
      continue;
    }
    Hint& hint = found.add(Hint::Kind::stop, first.log, found.node(first.log).messages[first.message], weight);
    hint.node = name;
    begins(hint, since);
    hint.until_ns = next->ts_ns;
    hint.words += fmt::format("; {} itself logs nothing until {} later", name,
                              format_duration((next->ts_ns - first.ts_ns) / 1'000'000 * 1'000'000));
  }
}

}  // namespace rose::logs
