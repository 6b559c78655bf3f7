#include "logs/hint/gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "logs/hint/findings.h"

namespace rose::logs {
namespace {

constexpr std::int64_t kLeastGap = kSecond;  // shorter gaps are never taken for a pause
// If the usual gap of a log is already as long as a pause would be, a gap is evidence only if it is at least
// kLongerThanUsual times as long as the usual gap.
constexpr std::int64_t kLongerThanUsual = 2;
constexpr std::size_t kMostTimeouts = 20;  // if a log reports this many timeouts, they are normal for the system
constexpr double kSharedSilence = 0.8;     // a gap is shared if the other nodes are silent during this share of it

// True if the other nodes were also silent for most of this time, probably because there was nothing to log.
bool others_were_silent(const Findings& found, std::size_t n, std::int64_t begin, std::int64_t end) {
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
    if (static_cast<double>(std::max(longest, end - since)) < kSharedSilence * static_cast<double>(end - begin))
      return false;
  }
  return others;
}

bool is_end(const Findings& found, const std::string& name, std::int64_t ts) {
  return std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
    return hint.kind == Hint::Kind::end && hint.node == name && hint.ts_ns == ts;
  });
}

}  // namespace

std::int64_t longest_gap(const NodeLog& node) {
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < node.messages.size(); ++i)
    if (node.messages[i - 1].ts_ns != kNoTime)
      longest = std::max(longest, node.messages[i].ts_ns - node.messages[i - 1].ts_ns);
  return longest;
}

std::int64_t usual_gap(const NodeLog& node) {
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < node.messages.size(); ++i)
    gaps.push_back(node.messages[i].ts_ns - node.messages[i - 1].ts_ns);
  if (gaps.size() < kGapsForUsual) return 0;
  std::nth_element(gaps.begin(), gaps.begin() + (kGapsForUsual - 1), gaps.end(), std::greater<>());
  return gaps[kGapsForUsual - 1];
}

// Adds a pause if a message reports a timeout without naming the peer, and exactly one other node was silent at that
// time, for far longer than usual.
void find_silent_node(Findings& found) {
  std::vector<std::int64_t> waited;
  std::vector<std::size_t> by;
  for (std::size_t n = 0; n < found.failure.nodes.size(); ++n)
    for (const Message& message : found.node(n).messages) {
      if (waited.size() >= kMostTimeouts) return;  // so many timeouts are normal for this system
      if (message.ts_ns == kNoTime || message.level == Level::debug || message.level == Level::trace) continue;
      const Meaning meaning = found.meaning(message);
      if (!meaning.late || meaning.own_pause_ns != 0 || found.occurs_throughout(n, message.kind)) continue;
      waited.push_back(message.ts_ns);
      by.push_back(n);
    }
  if (waited.empty()) return;
  std::size_t silent = kNoNode;
  const Message *before = nullptr, *after = nullptr;
  for (std::size_t n = 0; n < found.failure.nodes.size(); ++n) {
    const NodeLog& here = found.node(n);
    if (!is_timed(here) || here.node.empty() || found.normal_log(n) != nullptr || here.messages.size() <= kGapsForUsual)
      continue;
    const std::int64_t least = std::max(2 * kEarlyEnd, kGapFactor * usual_gap(here));
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
  Hint& hint = found.add(Hint::Kind::stop, silent, *before, kLogGap);
  hint.until_ns = after->ts_ns;
  hint.words +=
      fmt::format(", and then nothing for {}, while another one waited", format_duration(gap / 1'000'000 * 1'000'000));
}

// Used only if there is no normal log. In a long log, one gap that is far longer than all others is evidence if other
// nodes log meanwhile. If the node starts after the gap, its process had ended. Otherwise, the gap is weak evidence of
// a pause.
void find_unusual_gap(Findings& found, std::size_t n) {
  constexpr double kStartsAfter = 0.5, kAlone = 0.25;
  const NodeLog& here = found.node(n);
  if (!is_timed(here) || here.node.empty() || here.messages.size() < 2 || !found.normal.nodes.empty()) return;
  std::size_t after = 1;
  for (std::size_t i = 2; i < here.messages.size(); ++i)
    if (here.messages[i].ts_ns - here.messages[i - 1].ts_ns >
        here.messages[after].ts_ns - here.messages[after - 1].ts_ns)
      after = i;
  const Message &before = here.messages[after - 1], &next = here.messages[after];
  // If no other node logs meanwhile, nothing shows that there was something to log.
  const bool others = std::any_of(found.failure.nodes.begin(), found.failure.nodes.end(), [&](const NodeLog& other) {
    return &other != &here && is_timed(other) && other.messages.front().ts_ns < before.ts_ns &&
           other.messages.back().ts_ns > next.ts_ns;
  });
  if (!others || !is_unusual_gap(here, after) || found.is_restarted(n, next.ts_ns) ||
      is_end(found, here.node, before.ts_ns) || others_were_silent(found, n, before.ts_ns, next.ts_ns))
    return;
  const bool ended = std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
    return hint.kind == Hint::Kind::end && hint.node == here.node && hint.ts_ns >= before.ts_ns - kEarlyEnd &&
           hint.ts_ns <= next.ts_ns;
  });
  if (ended) return;
  const std::size_t until = std::min(here.messages.size(), after + kBannerMessages);
  bool starts = false;
  for (std::size_t i = after; i < until && here.messages[i].ts_ns - next.ts_ns <= 10 * kSecond && !starts; ++i)
    starts = !found.occurs_throughout(n, here.messages[i].kind) && found.meaning(here.messages[i]).starting;
  Hint& hint = found.add(starts ? Hint::Kind::end : Hint::Kind::stop, n, before, starts ? kStartsAfter : kAlone);
  hint.until_ns = next.ts_ns;
  if (starts) hint.signal = SIGKILL;
  else hint.passing = true;
  hint.words += fmt::format(", and then nothing for {}, as at no other time{}",
                            format_duration((next.ts_ns - before.ts_ns) / 1'000'000 * 1'000'000),
                            starts ? "; then it starts" : "");
  found.silences.push_back(found.hints.size() - 1);
}

// A gap is a pause if it is much longer than the longest gap in the run without faults, and than the usual gap of this
// log.
void find_gaps(Findings& found, std::size_t n) {
  const NodeLog& here = found.node(n);
  const NodeLog* other = found.normal_log(n);
  find_unusual_gap(found, n);
  if (!is_timed(here) || other == nullptr || other->messages.size() < 4) return;
  const std::int64_t usually = std::max(kLeastGap, kGapFactor * longest_gap(*other)), own_gap = usual_gap(here);
  const std::int64_t most = own_gap >= usually ? kLongerThanUsual * own_gap : usually;
  for (std::size_t i = 1; i < here.messages.size(); ++i) {
    const Message& before = here.messages[i - 1];
    const std::int64_t gap = here.messages[i].ts_ns - before.ts_ns;
    if (gap < most || is_end(found, here.node, before.ts_ns)) continue;
    const bool together = others_were_silent(found, n, before.ts_ns, here.messages[i].ts_ns);
    Hint& hint = found.add(Hint::Kind::stop, n, before, together ? kLogGap * kExplainedSilence : kLogGap);
    hint.until_ns = here.messages[i].ts_ns;
    hint.words += fmt::format(", and then nothing for {}{}", format_duration(gap / 1'000'000 * 1'000'000),
                              together ? ", as from all others" : "");
    found.silences.push_back(found.hints.size() - 1);
  }
}

}  // namespace rose::logs
