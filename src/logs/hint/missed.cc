#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "logs/hint/findings.h"

namespace rose::logs {
namespace {

constexpr double kStoodOrCut = 0.75;  // times this: and it may have stood still rather than have been cut off
constexpr std::int64_t kNoticedSoon =
    2 * kSecond;                                   // they mostly say so soon: what it said last may be from long before
constexpr std::int64_t kTogetherMissed = kSecond;  // two sides of a cut notice it within that of each other

constexpr std::int64_t kSilentAtLeast = kSecond;      // of a node that others miss: shorter ones show nothing
constexpr std::int64_t kStoodAtLeast = 10 * kSecond;  // what others miss for shorter, they mostly do not report

constexpr std::size_t kExcerpt = 3;  // messages of a log that ends somewhere
constexpr double kEndedOrCut = 0.7;  // times this: and its process may have ended, where nothing shows that it lives on
// The same where nobody answered for it, neither by refusing nor by closing a connection: a process's end does that,
// unless its machine went down with it. Such a silence is a cut or a pause as well, so these are too little to explain
// it away (kLeastReported).
constexpr double kEndedUnanswered = 0.48;
constexpr double kStoodUnanswered = 0.45;

// Its log shows that it went on after that, or has too few messages to show that it did not. Several messages that
// follow are no clock's error: what ended says nothing.
bool lives_on(const Findings& found, const std::string& name, std::int64_t ts) {
  const NodeLog* log = found.log_of(name);
  if (log == nullptr) return false;
  const std::vector<Message>& all = log->messages;
  return all.size() <= kExcerpt || !is_timed(*log) || all.back().ts_ns > ts + kEarly ||
         all[all.size() - 2].ts_ns > ts + kTogetherMissed;
}

// So many nodes are missed by the one that misses this one, at about that time. They hardly ended together.
std::size_t missed_together(const Findings& found, const Hint& silence) {
  std::set<std::string> all;
  for (const Hint& hint : found.hints)
    if (hint.kind == Hint::Kind::silence && hint.node == silence.node && !hint.peer.empty() && !hint.unnamed &&
        hint.ts_ns != kNoTime && std::abs(hint.ts_ns - silence.ts_ns) <= kTogetherMissed)
      all.insert(hint.peer);
  return std::max<std::size_t>(all.size(), 1);
}

// A node that misses most of the others at once was rather cut off, or stood still, itself.
void add_lonely(Findings& found) {
  constexpr std::size_t kLeastMissed = 3;
  std::map<std::string, std::pair<std::size_t, std::size_t>> lonely;  // how many it misses, and the first hint
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
                           kStoodUnanswered * silence.weight);
    stop.node = name;
    stop.took_ns = kStoodAtLeast;
    stop.missed = true;
    stop.words += fmt::format("; {} misses {} others at once", name, count);
  }
}

}  // namespace

// A node that others miss, and that is never mentioned again, may have ended or may have been partitioned.
void find_missed_ends(Findings& found) {
  std::map<std::string, std::size_t> missed;  // the first hint of each
  for (std::size_t i = 0; i < found.hints.size(); ++i) {
    const Hint& hint = found.hints[i];
    if (hint.kind != Hint::Kind::silence || hint.no_way || hint.peer.empty()) continue;
    const auto [first, fresh] = missed.try_emplace(hint.peer, i);
    if (!fresh && hint.weight > found.hints[first->second].weight) first->second = i;
  }
  for (const auto& [name, i] : missed) {
    const Hint silence = found.hints[i];
    const bool reported = std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.kind == Hint::Kind::end && hint.node == name;
    });
    // What is merged again had not ended.
    if (reported || (found.reunited && !silence.closed) || lives_on(found, name, silence.ts_ns)) continue;
    const bool unanswered = std::none_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.kind == Hint::Kind::silence && hint.answered && hint.peer == name;
    });
    const Message& message = found.node(silence.log).messages[silence.message];
    const bool stands = std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.kind == Hint::Kind::stop && hint.node == name;
    });
    if (unanswered && silence.timed_out && !stands) {
      Hint& stop = found.add(Hint::Kind::stop, silence.log, message, kStoodUnanswered * silence.weight);
      stop.node = name;
      stop.took_ns = kStoodAtLeast;
      stop.missed = true;
      stop.words += fmt::format("; {} may have stood still", name);
    }
    Hint& hint = found.add(Hint::Kind::end, silence.log, message,
                           (unanswered && silence.timed_out ? kEndedUnanswered : kEndedOrCut) * silence.weight /
                               static_cast<double>(missed_together(found, silence)));
    hint.node = name;
    hint.signal = SIGKILL;
    hint.missed = true;
    hint.words += fmt::format("; nothing shows that {} lived on", name);
  }
  add_lonely(found);
}

// A node that all others miss, and that logs nothing itself meanwhile, may have been paused or partitioned. A
// partitioned node usually misses the others.
void find_missed(Findings& found) {
  std::map<std::string, std::map<std::string, std::size_t>> missed;  // by the node that misses it: the hints
  for (std::size_t i = 0; i < found.hints.size(); ++i)
    if (const Hint& hint = found.hints[i];
        hint.kind == Hint::Kind::silence && hint.weight >= kStood && hint.ts_ns != kNoTime)
      missed[hint.peer].emplace(hint.node, i);
  for (const auto& [name, by] : missed) {
    if (by.size() + 1 < found.names.size()) continue;
    // A node that is paused can still be reached.
    if (std::any_of(by.begin(), by.end(), [&](const auto& entry) { return found.hints[entry.second].no_way; }))
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
    const std::int64_t since = std::max((next - 1)->ts_ns, first.ts_ns - kNoticed);
    if (next->ts_ns - since < kSilentAtLeast) continue;
    const auto begins = [&](Hint& hint, std::int64_t earliest) {
      hint.ts_ns = std::max(earliest, first.ts_ns - kNoticedSoon);
      if (earliest < hint.ts_ns) hint.since_ns = earliest;
    };
    // The timeouts of both sides expired together. A node that had been paused would report it when it continued,
    // whenever that was.
    const bool at_once = next->ts_ns - first.ts_ns < kTogetherMissed;
    const bool misses_others = std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.kind == Hint::Kind::silence && hint.node == name && hint.ts_ns >= first.ts_ns - kNoticed &&
             (hint.ts_ns < next->ts_ns || (at_once && hint.ts_ns == next->ts_ns));
    });
    if (misses_others) continue;
    const double weight = kStoodOrCut * first.weight;
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
    hint.words += fmt::format("; {} itself says nothing until {} later", name,
                              format_duration((next->ts_ns - first.ts_ns) / 1'000'000 * 1'000'000));
  }
}

}  // namespace rose::logs
