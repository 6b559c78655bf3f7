// Ends of processes in the log of one node. A "life" of a node is the part of its log between two starts of its
// process.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "logs/hint/findings.h"
#include "logs/hint/gaps.h"
#include "logs/hint/mentions.h"

namespace rose::logs {
namespace {

constexpr std::size_t kOpening = 3;  // if there is no normal log, this many consecutive messages identify a new start
// if these messages occur more often, they are those of a periodic task and not of a start
constexpr std::uint64_t kMostLives = 20;
constexpr double kRestarted = 0.9;  // weight: the process started again, and no message states why
// Factor if the process logged only its start before it started again: it cannot start, usually because of an earlier
// fault.
constexpr double kNeverStarted = 0.3;
constexpr double kPanicked = 0.6;          // weight: the process ended in a panic; usually something else is the cause
constexpr double kSelfInflicted = 0.7;     // factor: the process ended itself
constexpr double kLogEndsEarly = 0.5;      // weight: the log ends early
constexpr double kUnconfirmedStop = 0.15;  // weight: an orderly stop, if no other log shows that it was unusual

// The banner of a program: up to three kinds of messages that occur once in the run without faults, near the beginning
// of its log. If there is no such run, the kinds of the first three messages.
std::set<TemplateId> banner(const Findings& found, std::size_t n) {
  std::set<TemplateId> kinds;
  const NodeLog* other = found.normal_log(n);
  const NodeLog& from = other != nullptr ? *other : found.node(n);
  for (std::size_t i = 0; i < from.messages.size() && i < kBannerMessages && kinds.size() < 3; ++i) {
    const TemplateId kind = from.messages[i].kind;
    if (other != nullptr ? from.counts[kind] == 1 : i < 3) kinds.insert(kind);
  }
  return kinds;
}

// The kind of the first message in the log that belongs to the banner.
TemplateId first_of(const Findings& found, const std::set<TemplateId>& banner, std::size_t n) {
  const NodeLog* other = found.normal_log(n);
  for (const Message& message : (other != nullptr ? *other : found.node(n)).messages)
    if (banner.contains(message.kind)) return message.kind;
  return 0;
}

// True if the program starts at message `i`, whose kind is in the banner. The message alone proves nothing, because it
// may be logged for other reasons, too ("member 2 leads"). Only a start also logs a message of the banner's first kind
// (`opening`) near it. `first`: the index of the first message of that kind.
bool begins_again(const NodeLog& here, std::size_t i, TemplateId opening, std::size_t first) {
  for (std::size_t k = std::max(first + 1, i - std::min(i, kBannerMessages));
       k < std::min(here.messages.size(), i + kBannerMessages); ++k)
    if (here.messages[k].kind == opening) return true;
  return false;
}

// True if the first messages of the log occur again at `i`, in the same order, and the words near them suggest a start.
bool opens_again(const Findings& found, const NodeLog& here, std::size_t i) {
  if (here.messages.size() < i + kOpening || here.counts[here.messages[0].kind] > kMostLives) return false;
  std::set<TemplateId> kinds;
  for (std::size_t k = 0; k < kOpening; ++k) {
    if (here.messages[k].kind != here.messages[i + k].kind) return false;
    kinds.insert(here.messages[k].kind);
  }
  if (kinds.size() < kOpening) return false;
  for (std::size_t k = i; k < std::min(here.messages.size(), i + kBannerMessages); ++k) {
    const std::string low = lower_case(found.failure.text(here.messages[k]));
    for (const std::string_view word : {"start", "listen", "boot", "ready", "loaded", "initiali", "running"})
      if (low.find(word) != std::string::npos) return true;
  }
  return false;
}

// True for a panic or an uncaught exception. If a program survives an exception, it logs the exception with a level,
// and continues.
bool is_fatal(const Findings& found, const Message& message, bool is_last) {
  const Meaning meaning = found.meaning(message);
  return meaning.panic || meaning.gave_up ||
         (meaning.traceback && is_last && message.level != Level::error && message.level != Level::warning);
}

// True if the node had ended before the system was stopped: another node logged an orderly stop, and this node did not,
// although it logs one in the run without faults.
bool lacks_usual_stop(const Findings& found, std::size_t n) {
  const NodeLog* before = found.normal_log(n);
  const auto stopping = [&](const Logs& logs, const NodeLog& node) {
    return stops_in_order(logs, found.names, node, 0, node.messages.size());
  };
  if (before == nullptr || !stopping(found.normal, *before)) return false;
  return std::any_of(found.failure.nodes.begin(), found.failure.nodes.end(), [&](const NodeLog& other) {
    return &other != &found.node(n) && !other.node.empty() && stopping(found.failure, other);
  });
}

// Adds a hint that the process which logged the messages [begin, end) has ended.
Hint& add_end(Findings& found, std::size_t n, std::size_t begin, std::size_t end, double weight) {
  const std::vector<Message>& messages = found.node(n).messages;
  std::size_t at = end - 1;  // the message to quote, which must not be blank
  while (at > begin && found.failure.text(messages[at]).find_first_not_of(" \t\r\n*") == std::string_view::npos) --at;
  bool itself = last_stop(found.failure, found.names, found.node(n), begin, end).gave_up;
  for (std::size_t i = tail_of(begin, end); i < end; ++i)
    itself = itself || is_fatal(found, messages[i], i + 1 == end) || messages[i].level == Level::fatal;
  Hint& hint = found.add(Hint::Kind::end, n, messages[at], itself ? weight * kSelfInflicted : weight);
  hint.itself = itself;
  hint.signal = itself ? SIGABRT : SIGKILL;
  return hint;
}

// True if one of the last messages reports that a child process ended. The writer then starts its children again (as
// PostgreSQL does after the crash of a server process), and has not ended itself.
bool restarts_helpers(const Findings& found, const NodeLog& here, std::size_t begin, std::size_t end) {
  for (std::size_t i = tail_of(begin, end); i < end; ++i)
    if (found.meaning(here.messages[i]).helper) return true;
  return false;
}

// Adds the end of the process that ran before message `i`, which is the first message after the node was started again.
void add_life(Findings& found, std::size_t n, std::size_t begin, std::size_t i) {
  if (i == begin || restarts_helpers(found, found.node(n), begin, i)) return;
  const bool ordered = stops_in_order(found.failure, found.names, found.node(n), begin, i),
             never_up = begin != 0 && i - begin < kOpening;
  Hint& hint = add_end(found, n, begin, i, (ordered ? kLogGap : kRestarted) * (never_up ? kNeverStarted : 1));
  if (ordered && !hint.itself) hint.signal = SIGTERM;
  hint.until_ns = found.node(n).messages[i].ts_ns;
  hint.words += fmt::format(" is the last before it begins again{}", hint.itself ? " (it ended by itself)"
                                                                     : ordered   ? " (it was stopped in an orderly way)"
                                                                                 : "");
}

// Adds the ends of all lives of the node except the last one. Returns the index of the last life's first message.
std::size_t add_lives(Findings& found, std::size_t n) {
  const NodeLog& here = found.node(n);
  const std::set<TemplateId> begin = banner(found, n);
  const TemplateId opening = first_of(found, begin, n);
  const auto first =
      static_cast<std::size_t>(std::find_if(here.messages.begin(), here.messages.end(),
                                            [&](const Message& message) { return message.kind == opening; }) -
                               here.messages.begin());
  std::size_t since = 0;  // index of the first message of the current life
  std::set<TemplateId> kinds;
  std::map<TemplateId, bool> starting;
  for (std::size_t i = 0; i < here.messages.size(); ++i) {
    const TemplateId kind = here.messages[i].kind;
    if (!begin.contains(kind) || kinds.insert(kind).second || !begins_again(here, i, opening, first)) continue;
    if (found.occurs_throughout(n, kind)) continue;
    if (found.normal_log(n) == nullptr) {  // reading one message per kind is enough, because the others report the same
      const auto [known, fresh] = starting.try_emplace(kind, false);
      if (fresh) known->second = found.meaning(here.messages[i]).starting;
      if (!known->second && !opens_again(found, here, i)) continue;
    }
    kinds = {kind};
    add_life(found, n, since, i);
    since = i;
  }
  return since;
}

// Assumption: a program reports its start in several messages that it logs only then. Goal: to find a new start in an
// excerpt that begins in the middle of a life, so that its first messages do not occur again. Derivation: components of
// a program start as well. If no earlier message reports a start, and then several messages report one at about the
// same time, the program itself starts. In a log that begins with the program's start, the starts of components come
// later. Returns the index of the first message of the new start; 0 if there is none.
std::size_t find_first_start(const Findings& found, std::size_t n) {
  constexpr std::size_t kLeastOfLife = 3, kLeastSigns = 2;
  constexpr std::int64_t kSameStart = 30 * kSecond, kLeastLived = 3 * kSecond;
  const NodeLog& here = found.node(n);
  if (!found.normal.nodes.empty() || !is_timed(here)) return 0;
  const auto is_sign = [&](const Message& message) {
    const Meaning meaning = found.meaning(message);
    return meaning.starting || meaning.serving;
  };
  const auto first = static_cast<std::size_t>(std::find_if(here.messages.begin(), here.messages.end(), is_sign) -
                                              here.messages.begin());
  if (first < kLeastOfLife || first == here.messages.size()) return 0;
  // The earlier messages belong to a previous life if they last longer than a start (kSameStart), or if they last at
  // least kLeastLived and an unusually long gap separates them from the start. A single start may contain such a gap,
  // too, but then the messages before the gap come within a shorter time.
  const std::int64_t begin = here.messages[first].ts_ns, gap = begin - here.messages[first - 1].ts_ns;
  const std::int64_t lived = begin - gap - here.messages.front().ts_ns;
  std::int64_t longest = kSecond;
  for (std::size_t i = 1; i < first; ++i)
    longest = std::max(longest, here.messages[i].ts_ns - here.messages[i - 1].ts_ns);
  if (lived < kSameStart && (lived < kLeastLived || gap < kGapFactor * longest)) return 0;
  std::set<TemplateId> signs;
  for (std::size_t i = first; i < std::min(here.messages.size(), first + kBannerMessages) &&
                              here.messages[i].ts_ns - here.messages[first].ts_ns <= kSameStart;
       ++i)
    if (is_sign(here.messages[i])) signs.insert(here.messages[i].kind);
  return signs.size() >= kLeastSigns ? first : 0;
}

// Adds a hint if the last life ended in a panic or a similar failure of its own. Returns true if it did.
bool add_panic(Findings& found, std::size_t n, std::size_t since) {
  const NodeLog& here = found.node(n);
  const std::size_t end = here.messages.size();
  if (restarts_helpers(found, here, since, end)) return false;
  for (std::size_t i = tail_of(since, end); i < end; ++i) {
    const TemplateId kind = here.messages[i].kind;
    if (found.is_normal(n, kind) || found.occurs_throughout(n, kind)) continue;
    if (!is_fatal(found, here.messages[i], i + 1 == end)) continue;
    Hint& hint = found.add(Hint::Kind::end, n, here.messages[i], kPanicked);
    hint.itself = true;
    hint.signal = SIGABRT;
    return true;
  }
  return false;
}

// Assumption: a process has ended if it reports its own failure and then either logs nothing for longer than at any
// other time, or logs its start. Goal: to find an end within a log even if the log begins in the middle of a life, so
// that its first messages show no start. Derivation: if the program recovers from an exception, its everyday messages
// follow.
void add_inner_panics(Findings& found, std::size_t n) {
  constexpr std::uint64_t kRare = 5;
  constexpr std::size_t kMostChecked = 40;  // each check reads the whole log
  constexpr std::int64_t kSameEnd = 60 * kSecond;
  const NodeLog& here = found.node(n);
  if (!is_timed(here) || here.node.empty()) return;
  std::map<TemplateId, bool> fatal;
  std::size_t checked = 0;
  for (std::size_t i = 0; i + 1 < here.messages.size() && checked < kMostChecked; ++i) {
    const Message& message = here.messages[i];
    const bool grave = message.level == Level::none || message.level >= Level::error;
    if (!grave || here.counts[message.kind] > kRare || found.is_normal(n, message.kind) ||
        found.belongs_to_start(n, message))
      continue;
    const auto [known, fresh] = fatal.try_emplace(message.kind, false);
    if (fresh) known->second = is_fatal(found, message, false);
    if (!known->second || restarts_helpers(found, here, 0, i + 1)) continue;
    ++checked;
    const std::size_t until = std::min(here.messages.size(), i + 1 + kBannerMessages);
    const bool starts = std::any_of(
        here.messages.begin() + static_cast<std::ptrdiff_t>(i) + 1,
        here.messages.begin() + static_cast<std::ptrdiff_t>(until),
        [&](const Message& next) { return next.ts_ns - message.ts_ns <= kSameEnd && found.meaning(next).starting; });
    if (!starts && !is_unusual_gap(here, i + 1)) continue;
    const bool reported = std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
      return hint.kind == Hint::Kind::end && hint.node == here.node && std::abs(hint.ts_ns - message.ts_ns) <= kSameEnd;
    });
    if (reported) continue;
    Hint& hint = found.add(Hint::Kind::end, n, message, kPanicked);
    hint.itself = true;
    hint.signal = SIGABRT;
    hint.until_ns = here.messages[i + 1].ts_ns;
  }
}

// A restart by operators is rarely the cause, but this cannot be excluded, so it gets a small weight.
void add_restarts(Findings& found, std::size_t n) {
  constexpr double kPlanned = 0.1;
  for (const Findings::Restart& restart : found.restarts(n)) {
    bool reported = false;
    for (Hint& hint : found.hints) {
      if (hint.kind != Hint::Kind::end || hint.node != found.node(n).node || hint.ts_ns < restart.begin ||
          hint.ts_ns > restart.end)
        continue;
      reported = true;
      if (hint.signal == SIGTERM) hint.weight = std::min(hint.weight, kPlanned);
    }
    if (reported) continue;
    Hint& hint = found.add(Hint::Kind::end, n, *restart.stop, kPlanned);
    hint.signal = SIGTERM;
    hint.until_ns = restart.end;
    hint.words += " (it was stopped in an orderly way, and started again)";
  }
}

// True if another node stops, or its log ends, at least kEarlyEnd after this node. `stops`: when each node was stopped;
// kNoTime if it was not.
bool is_stopped_alone(const Logs& logs, std::size_t n, const std::vector<std::int64_t>& stops) {
  const auto leaves = [&](std::size_t index) {
    return stops[index] != kNoTime ? stops[index] : logs.nodes[index].messages.back().ts_ns;
  };
  for (std::size_t other = 0; other < logs.nodes.size(); ++other)
    if (is_timed(logs.nodes[other]) && leaves(other) - leaves(n) >= kEarlyEnd) return true;
  return false;
}

// True if other nodes went on after this node had been stopped, unless this is also so in the run without faults.
bool is_stopped_by_itself(const Findings& found, std::size_t n) {
  if (!is_stopped_alone(found.failure, n, found.stops)) return false;
  const NodeLog* before = found.normal_log(n);
  return before == nullptr || !is_timed(*before) ||
         !is_stopped_alone(found.normal, static_cast<std::size_t>(before - found.normal.nodes.data()),
                           found.normal_stops);
}

// True if nodes that were not stopped report, after this node's stop, that it is missing. The node was then stopped
// alone, even if all logs end soon after.
bool is_missed_after_stop(const Findings& found, std::size_t n) {
  const NodeLog& here = found.node(n);
  if (found.stops[n] == kNoTime || here.node.empty()) return false;
  for (std::size_t other = 0; other < found.failure.nodes.size(); ++other) {
    const NodeLog& log = found.node(other);
    if (other == n || !is_timed(log) || found.stops[other] != kNoTime) continue;
    for (const Message& message : log.messages) {
      if (message.ts_ns < found.stops[n]) continue;
      const Meaning meaning = found.meaning(message);
      if ((meaning.lost || meaning.late) &&
          mentioned_node(found.names, log.node, meaning, found.failure.text(message)) == here.node)
        return true;
    }
  }
  return false;
}

}  // namespace

// The end of the last life is determined in this order: a panic; an orderly stop, which is a hint only if other nodes
// were not stopped; a log that ends early.
void find_ends(Findings& found, std::size_t n) {
  const NodeLog& here = found.node(n);
  std::size_t since = add_lives(found, n);
  const std::size_t end = here.messages.size();
  if (since == 0) {
    since = find_first_start(found, n);
    if (since != 0) add_life(found, n, 0, since);
  }
  add_inner_panics(found, n);
  add_restarts(found, n);
  if (end == 0 || add_panic(found, n, since) || !is_timed(here)) return;
  if (stops_in_order(found.failure, found.names, here, since, end) &&
      !last_stop(found.failure, found.names, here, since, end).gave_up) {
    const bool missed = is_missed_after_stop(found, n);
    if (!missed && !is_stopped_by_itself(found, n)) return;
    Hint& hint = add_end(found, n, since, end, kLogGap);
    hint.signal = SIGTERM;
    hint.words += missed ? " is the last (it was stopped in an orderly way), and others miss it"
                         : " is the last (it was stopped in an orderly way), while others go on";
    return;
  }
  const NodeLog* other = found.normal_log(n);
  // If there is no normal log, the end of this log means nothing in two cases: the log has too few messages for a usual
  // gap, so it may be an excerpt that ends anywhere; or the program logs only its start.
  if (other == nullptr && (here.messages.size() <= kGapsForUsual || found.logged_only_start(n))) return;
  std::int64_t gap = longest_gap(other != nullptr ? *other : here);
  if (other != nullptr && is_timed(*other)) gap = std::max(gap, found.normal_last_ns - other->messages.back().ts_ns);
  const std::int64_t silent = found.last_ns - here.messages.back().ts_ns;
  if (silent < (lacks_usual_stop(found, n) ? kEarlyEnd : std::max({kEarlyEnd, kGapFactor * gap, usual_gap(here)})))
    return;
  Hint& hint = add_end(found, n, since, end, kLogEndsEarly);
  hint.words += ", and then nothing any more, while others go on";
  hint.ended_early = true;
  found.silences.push_back(found.hints.size() - 1);
}

// Adds an orderly stop at the end of the only log, if there is no other evidence. Its weight is low, because no other
// log shows that the system was still in use.
void find_lone_stop(Findings& found) {
  std::size_t only = kNoNode;
  for (std::size_t n = 0; n < found.failure.nodes.size(); ++n) {
    if (found.node(n).messages.empty()) continue;
    if (only != kNoNode || found.normal_log(n) != nullptr) return;
    only = n;
  }
  if (only == kNoNode || found.node(only).node.empty()) return;
  const NodeLog& here = found.node(only);
  if (!stops_in_order(found.failure, found.names, here, 0, here.messages.size())) return;
  Hint& hint = add_end(found, only, 0, here.messages.size(), kUnconfirmedStop);
  hint.signal = SIGTERM;
  hint.words += " is the last (it was stopped in an orderly way)";
}

}  // namespace rose::logs
