#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "logs/hint/findings.h"
#include "logs/hint/spoken_of.h"

namespace rose::logs {
namespace {

constexpr std::size_t kBannerLines = 12;     // within so many lines a program says that it begins
constexpr std::size_t kOpening = 3;          // messages in a row that tell a new life where no run without faults does
constexpr std::uint64_t kMostLives = 20;     // whose opening comes more often does a round of work
constexpr std::int64_t kLeastGap = kSecond;  // of a node that is said to have stood still
constexpr std::int64_t kGapFactor = 4;       // times the longest gap that is usual
constexpr std::size_t kRhythm = 3;    // so many gaps of a node are how it speaks now: what counts is longer by far
constexpr std::int64_t kOffBeat = 2;  // times as long
constexpr double kRestarted = 0.9;    // it began again, and nothing says why
constexpr double kNeverUp =
    0.3;  // times this: it only said that it begins, and began again: it cannot, which mostly comes of what was before
constexpr double kPanicked = 0.6;        // it ended itself: the reason mostly stands elsewhere
constexpr double kByItself = 0.7;        // times this: it ended itself
constexpr double kSilent = 0.5;          // it says nothing any more
constexpr std::size_t kMostWaits = 20;   // in vain, of a log that does not do so all the time
constexpr double kStoppedUnseen = 0.15;  // it was stopped in order, and no other log shows that this was unusual
constexpr double kTogether = 0.8;        // of a silence, in one piece, that others share

// Longest silence between two messages of a node.
std::int64_t longest_gap(const NodeLog& node) {
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < node.messages.size(); ++i)
    if (node.messages[i - 1].ts_ns != kNoTime)
      longest = std::max(longest, node.messages[i].ts_ns - node.messages[i - 1].ts_ns);
  return longest;
}

// The banner of a program: kinds of messages that occur once in a run without faults, near its beginning.
std::set<TemplateId> banner(const Findings& found, std::size_t n) {
  std::set<TemplateId> kinds;
  const NodeLog* other = found.usual(n);
  const NodeLog& from = other != nullptr ? *other : found.node(n);
  for (std::size_t i = 0; i < from.messages.size() && i < kBannerLines && kinds.size() < 3; ++i) {
    const TemplateId kind = from.messages[i].kind;
    if (other != nullptr ? from.counts[kind] == 1 : i < 3) kinds.insert(kind);
  }
  return kinds;
}

// The first message of a banner.
TemplateId first_of(const Findings& found, const std::set<TemplateId>& banner, std::size_t n) {
  const NodeLog* other = found.usual(n);
  for (const Message& message : (other != nullptr ? *other : found.node(n)).messages)
    if (banner.contains(message.kind)) return message.kind;
  return 0;
}

// A single line of a banner may be said again for other reasons ("member 2 leads"); its first one is there, too, when a
// program begins. `first`: where it stands for the first time.
bool begins_again(const NodeLog& here, std::size_t i, TemplateId opening, std::size_t first) {
  for (std::size_t k = std::max(first + 1, i - std::min(i, kBannerLines));
       k < std::min(here.messages.size(), i + kBannerLines); ++k)
    if (here.messages[k].kind == opening) return true;
  return false;
}

// The log's first messages once more, in a row, as of a program that begins: whatever its words for that.
bool opens_again(const Findings& found, const NodeLog& here, std::size_t i) {
  if (here.messages.size() < i + kOpening || here.counts[here.messages[0].kind] > kMostLives) return false;
  std::set<TemplateId> kinds;
  for (std::size_t k = 0; k < kOpening; ++k) {
    if (here.messages[k].kind != here.messages[i + k].kind) return false;
    kinds.insert(here.messages[k].kind);
  }
  if (kinds.size() < kOpening) return false;
  for (std::size_t k = i; k < std::min(here.messages.size(), i + kBannerLines); ++k) {
    const std::string low = lower_case(found.failure.text(here.messages[k]));
    for (const std::string_view word : {"start", "listen", "boot", "ready", "loaded", "initiali", "running"})
      if (low.find(word) != std::string::npos) return true;
  }
  return false;
}

// A panic, or an exception that was not caught. A program that survives an exception logs it as an error and continues.
bool dies_of(const Findings& found, const Message& message, bool is_last) {
  const Meaning meaning = found.meaning(message);
  return meaning.panic || meaning.gave_up ||
         (meaning.traceback && is_last && message.level != Level::error && message.level != Level::warning);
}

// Those that were there when all were stopped said so, as this one did when nothing was wrong.
bool missed_the_stop(const Findings& found, std::size_t n) {
  const NodeLog* before = found.usual(n);
  const auto stopping = [&](const Logs& logs, const NodeLog& node) {
    return stops_in_order(logs, found.names, node, 0, node.messages.size());
  };
  if (before == nullptr || !stopping(found.normal, *before)) return false;
  return std::any_of(found.failure.nodes.begin(), found.failure.nodes.end(), [&](const NodeLog& other) {
    return &other != &found.node(n) && !other.node.empty() && stopping(found.failure, other);
  });
}

// The silence that is usual for a node: the third longest of its gaps. A longer one tells nothing about its rhythm.
std::int64_t beat(const NodeLog& node) {
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < node.messages.size(); ++i)
    gaps.push_back(node.messages[i].ts_ns - node.messages[i - 1].ts_ns);
  if (gaps.size() < kRhythm) return 0;
  std::nth_element(gaps.begin(), gaps.begin() + (kRhythm - 1), gaps.end(), std::greater<>());
  return gaps[kRhythm - 1];
}

Hint& add_end(Findings& found, std::size_t n, std::size_t begin, std::size_t end, double weight) {
  const std::vector<Message>& messages = found.node(n).messages;
  std::size_t at = end - 1;  // what is quoted says something
  while (at > begin && found.failure.text(messages[at]).find_first_not_of(" \t\r\n*") == std::string_view::npos) --at;
  bool itself = last_stop(found.failure, found.names, found.node(n), begin, end).gave_up;
  for (std::size_t i = tail_of(begin, end); i < end; ++i)
    itself = itself || dies_of(found, messages[i], i + 1 == end) || messages[i].level == Level::fatal;
  Hint& hint = found.add(Hint::Kind::end, n, messages[at], itself ? weight * kByItself : weight);
  hint.itself = itself;
  hint.signal = itself ? SIGABRT : SIGKILL;
  return hint;
}

// A message shortly before says that a helper ended: then the one that writes starts its helpers anew (PostgreSQL after
// the crash of a server process), and has not ended itself.
bool restarts_helpers(const Findings& found, const NodeLog& here, std::size_t begin, std::size_t end) {
  for (std::size_t i = tail_of(begin, end); i < end; ++i)
    if (found.meaning(here.messages[i]).helper) return true;
  return false;
}

// One that another one follows, whose first message is `i`.
void add_life(Findings& found, std::size_t n, std::size_t begin, std::size_t i) {
  if (i == begin || restarts_helpers(found, found.node(n), begin, i)) return;
  const bool ordered = stops_in_order(found.failure, found.names, found.node(n), begin, i),
             never_up = begin != 0 && i - begin < kOpening;
  Hint& hint = add_end(found, n, begin, i, (ordered ? kStood : kRestarted) * (never_up ? kNeverUp : 1));
  if (ordered && !hint.itself) hint.signal = SIGTERM;
  hint.until_ns = found.node(n).messages[i].ts_ns;
  hint.words += fmt::format(" is the last before it begins again{}", hint.itself ? " (it ended by itself)"
                                                                     : ordered   ? " (it was stopped in order)"
                                                                                 : "");
}

// All lives but the last one, which begins at the message that is given back.
std::size_t add_lives(Findings& found, std::size_t n) {
  const NodeLog& here = found.node(n);
  const std::set<TemplateId> begin = banner(found, n);
  const TemplateId opening = first_of(found, begin, n);
  const auto first =
      static_cast<std::size_t>(std::find_if(here.messages.begin(), here.messages.end(),
                                            [&](const Message& message) { return message.kind == opening; }) -
                               here.messages.begin());
  std::size_t since = 0;  // where the life began that is looked at
  std::set<TemplateId> kinds;
  std::map<TemplateId, bool> starting;
  for (std::size_t i = 0; i < here.messages.size(); ++i) {
    const TemplateId kind = here.messages[i].kind;
    if (!begin.contains(kind) || kinds.insert(kind).second || !begins_again(here, i, opening, first)) continue;
    if (found.is_everyday(n, kind)) continue;
    if (found.usual(n) == nullptr) {  // messages of one kind begin alike
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

// Whether the last life ended in a panic of its own.
bool add_panic(Findings& found, std::size_t n, std::size_t since) {
  const NodeLog& here = found.node(n);
  const std::size_t end = here.messages.size();
  if (restarts_helpers(found, here, since, end)) return false;
  for (std::size_t i = tail_of(since, end); i < end; ++i) {
    if (!dies_of(found, here.messages[i], i + 1 == end) || found.is_usual(n, here.messages[i].kind)) continue;
    Hint& hint = found.add(Hint::Kind::end, n, here.messages[i], kPanicked);
    hint.itself = true;
    hint.signal = SIGABRT;
    return true;
  }
  return false;
}

// Was nothing said by the others either, for most of that time? Then there was nothing to say, rather than that all
// stood still.
bool all_silent(const Findings& found, std::size_t n, std::int64_t begin, std::int64_t end) {
  bool others = false;
  for (std::size_t other = 0; other < found.failure.nodes.size(); ++other) {
    if (other == n || !is_timed(found.node(other))) continue;
    others = true;
    const std::vector<Message>& all = found.node(other).messages;
    std::int64_t longest = 0, since = begin;
    for (auto next = std::lower_bound(all.begin(), all.end(), begin,
                                      [](const Message& one, std::int64_t ts) { return one.ts_ns < ts; });
         next != all.end() && next->ts_ns < end; ++next) {
      longest = std::max(longest, next->ts_ns - since);
      since = next->ts_ns;
    }
    if (static_cast<double>(std::max(longest, end - since)) < kTogether * static_cast<double>(end - begin))
      return false;
  }
  return others;
}

bool is_end(const Findings& found, const std::string& name, std::int64_t ts) {
  return std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
    return hint.kind == Hint::Kind::end && hint.node == name && hint.ts_ns == ts;
  });
}

// Whether a node was stopped, and not all were. `stops`: of each node, kNoTime where it was not.
bool is_stopped_alone(const Logs& logs, std::size_t n, const std::vector<std::int64_t>& stops) {
  const auto leaves = [&](std::size_t index) {
    return stops[index] != kNoTime ? stops[index] : logs.nodes[index].messages.back().ts_ns;
  };
  for (std::size_t other = 0; other < logs.nodes.size(); ++other)
    if (is_timed(logs.nodes[other]) && leaves(other) - leaves(n) >= kEarly) return true;
  return false;
}

// Nothing but this node was stopped, nor is it in runs without faults.
bool is_stopped_by_itself(const Findings& found, std::size_t n) {
  if (!is_stopped_alone(found.failure, n, found.stops)) return false;
  const NodeLog* before = found.usual(n);
  return before == nullptr || !is_timed(*before) ||
         !is_stopped_alone(found.normal, static_cast<std::size_t>(before - found.normal.nodes.data()),
                           found.normal_stops);
}

// Others that do not stop themselves report after its stop that it is gone: it was stopped and they were not, however
// soon the logs end.
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
          spoken_of(found.names, log.node, meaning, found.failure.text(message)) == here.node)
        return true;
    }
  }
  return false;
}

}  // namespace

void find_ends(Findings& found, std::size_t n) {
  const NodeLog& here = found.node(n);
  const std::size_t since = add_lives(found, n), end = here.messages.size();
  if (end == 0 || add_panic(found, n, since) || !is_timed(here)) return;
  if (stops_in_order(found.failure, found.names, here, since, end) &&
      !last_stop(found.failure, found.names, here, since, end).gave_up) {
    const bool missed = is_missed_after_stop(found, n);
    if (!missed && !is_stopped_by_itself(found, n)) return;
    Hint& hint = add_end(found, n, since, end, kStood);
    hint.signal = SIGTERM;
    hint.words += missed ? " is the last (it was stopped in order), and others miss it"
                         : " is the last (it was stopped in order), while others go on";
    return;
  }
  // Some have said all when they have begun, and are well.
  const NodeLog* other = found.usual(n);
  // Few messages have no rhythm that could be missed: an excerpt ends somewhere.
  if (other == nullptr && (here.messages.size() <= kRhythm || found.wrote_all_at_start(n))) return;
  std::int64_t gap = longest_gap(other != nullptr ? *other : here);
  if (other != nullptr && is_timed(*other)) gap = std::max(gap, found.normal_last_ns - other->messages.back().ts_ns);
  const std::int64_t silent = found.last_ns - here.messages.back().ts_ns;
  if (silent < (missed_the_stop(found, n) ? kEarly : std::max({kEarly, kGapFactor * gap, beat(here)}))) return;
  Hint& hint = add_end(found, n, since, end, kSilent);
  hint.words += ", and then nothing any more, while others go on";
  hint.fell_silent = true;
  found.silences.push_back(found.hints.size() - 1);
}

// Somebody waited too long, for whom is not said, while one other node was silent for far longer than it is otherwise.
void find_silent_one(Findings& found) {
  std::vector<std::int64_t> waited;
  std::vector<std::size_t> by;
  for (std::size_t n = 0; n < found.failure.nodes.size(); ++n)
    for (const Message& message : found.node(n).messages) {
      if (waited.size() >= kMostWaits) return;  // it always does
      if (message.ts_ns == kNoTime || message.level == Level::debug || message.level == Level::trace) continue;
      const Meaning meaning = found.meaning(message);
      if (!meaning.late || meaning.stood_ns != 0 || found.is_everyday(n, message.kind)) continue;
      waited.push_back(message.ts_ns);
      by.push_back(n);
    }
  if (waited.empty()) return;
  std::size_t silent = kNoNode;
  const Message *before = nullptr, *after = nullptr;
  for (std::size_t n = 0; n < found.failure.nodes.size(); ++n) {
    const NodeLog& here = found.node(n);
    if (!is_timed(here) || here.node.empty() || found.usual(n) != nullptr || here.messages.size() <= kRhythm) continue;
    const std::int64_t least = std::max(2 * kEarly, kGapFactor * beat(here));
    for (std::size_t i = 1; i < here.messages.size(); ++i) {
      const Message &last = here.messages[i - 1], &next = here.messages[i];
      if (next.ts_ns - last.ts_ns < least) continue;
      for (std::size_t k = 0; k < waited.size(); ++k) {
        if (by[k] == n || waited[k] <= last.ts_ns || waited[k] > next.ts_ns) continue;
        if (silent != kNoNode && silent != n) return;
        silent = n, before = &last, after = &next;
      }
    }
  }
  if (silent == kNoNode) return;
  const std::int64_t gap = after->ts_ns - before->ts_ns;
  Hint& hint = found.add(Hint::Kind::stop, silent, *before, kStood);
  hint.until_ns = after->ts_ns;
  hint.words +=
      fmt::format(", and then nothing for {}, while another one waited", format_duration(gap / 1'000'000 * 1'000'000));
}

// Where one log is all there is, and nothing else was found, its last messages are an orderly stop: nobody else's log
// can show that others went on, so it counts little.
void find_lone_stop(Findings& found) {
  std::size_t only = kNoNode;
  for (std::size_t n = 0; n < found.failure.nodes.size(); ++n) {
    if (found.node(n).messages.empty()) continue;
    if (only != kNoNode || found.usual(n) != nullptr) return;
    only = n;
  }
  if (only == kNoNode || found.node(only).node.empty()) return;
  const NodeLog& here = found.node(only);
  if (!stops_in_order(found.failure, found.names, here, 0, here.messages.size())) return;
  Hint& hint = add_end(found, only, 0, here.messages.size(), kStoppedUnseen);
  hint.signal = SIGTERM;
  hint.words += " is the last (it was stopped in order)";
}

void find_gaps(Findings& found, std::size_t n) {
  const NodeLog& here = found.node(n);
  const NodeLog* other = found.usual(n);
  if (!is_timed(here) || other == nullptr || other->messages.size() < 4) return;
  const std::int64_t usually = std::max(kLeastGap, kGapFactor * longest_gap(*other)), again = beat(here);
  const std::int64_t most = again >= usually ? kOffBeat * again : usually;
  for (std::size_t i = 1; i < here.messages.size(); ++i) {
    const Message& before = here.messages[i - 1];
    const std::int64_t gap = here.messages[i].ts_ns - before.ts_ns;
    if (gap < most || is_end(found, here.node, before.ts_ns)) continue;
    const bool together = all_silent(found, n, before.ts_ns, here.messages[i].ts_ns);
    Hint& hint = found.add(Hint::Kind::stop, n, before, together ? kStood * kHushed : kStood);
    hint.until_ns = here.messages[i].ts_ns;
    hint.words += fmt::format(", and then nothing for {}{}", format_duration(gap / 1'000'000 * 1'000'000),
                              together ? ", as from all others" : "");
    found.silences.push_back(found.hints.size() - 1);
  }
}

}  // namespace rose::logs
