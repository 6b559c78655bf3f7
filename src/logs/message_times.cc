// The durations that a message states.
#include <algorithm>
#include <cmath>

#include "base/begins_with.h"
#include "logs/message_reader.h"
#include "logs/spans.h"

namespace rose::logs {
namespace {

using knowledge::Says;
using knowledge::Statement;

// Durations in ns. A disk operation is slow from kLeastSlowDisk on, because even a rotating disk under load is faster.
// If a message states no duration, kSlowDiskUnstated (the threshold at which systems usually warn) or kHungUnstated
// (the limit of a watchdog) is used.
constexpr double kLeastSlowDisk = 100e6;
constexpr std::int64_t kSlowDiskUnstated = 1'000'000'000, kHungUnstated = 30'000'000'000;
constexpr double kLongestSpan = 3600e9;  // ns; longer durations are ignored: pauses and operations are shorter
// Distances in characters.
constexpr std::size_t kUnitDistance = 28;  // largest distance between a number and its unit
// Words that mark a number as a limit are at most this far before or after it.
constexpr std::size_t kBeforeNumber = 28, kAfterNumber = 12;

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.ends_with(word); });
}

// True if the number from `at` to `end` is the size of a heap and not a number of minutes: garbage collectors log
// "40M->39M(64M)". `last_size`: the end of the previous size in the text; 0: there is none.
bool is_size(std::string_view low, std::size_t at, std::size_t end, std::size_t last_size) {
  return low.substr(end).starts_with("->") || low.substr(0, at).ends_with("->") ||
         (last_size != 0 && at == last_size + 1 && low[last_size] == '(');
}

// True if the words state what may happen: "pauses may last 5s". "Could not" states what did not happen.
bool is_possibility(std::string_view words) {
  if (mentions(words, {" may ", " might ", " can ", " would "})) return true;
  constexpr std::string_view kCould = " could ";
  const std::size_t could = words.find(kCould);
  return could != words.npos && !words.substr(could + kCould.size()).starts_with("not ");
}

// True if a duration such as "PT9.1S" (ISO 8601) begins at the end of `before`.
bool is_iso_duration(std::string_view before) {
  return before == "pt" || (before.ends_with("pt") && !word_char(before[before.size() - 3]));
}

}  // namespace

// All durations in the message, in the order of the text.
std::vector<Stated> MessageReader::spans() const {
  std::vector<Stated> all;
  std::size_t size_end = 0;
  for (std::size_t at = low().find_first_of("0123456789"); at != std::string_view::npos;) {
    Span span = read_span(low(), at);
    const std::string_view before = low().substr(at - std::min(at, kBeforeNumber), std::min(at, kBeforeNumber));
    if (ends_with_any(before, {" for ", " of ", "took ", "lasted "}))
      if (const Span clock = read_clock_span(low(), at); clock.ns > 0) span = clock;
    const bool size = is_size(low(), at, span.end, size_end);
    if (size) size_end = span.end;
    const bool word = (at != 0 && (word_char(low()[at - 1]) || low()[at - 1] == '.' || low()[at - 1] == '/') &&
                       !is_iso_duration(before)) ||
                      size;
    double ns = span.ns;
    // The unit may be in another place: "pause (ms) 5210", "pause of 11832 > 5000 (milliseconds)", "takes_ms=4217".
    if (ns == 0 &&
        (mentions(before, {"(ms)", "_ms=", "millis=", "millis:"}) ||
         mentions(low().substr(std::min(low().size(), span.end), kUnitDistance), {"(milliseconds)", "(ms)"})))
      ns = span.number * 1e6;
    if (!word && ns > 0 && ns < kLongestSpan) {
      const std::string_view near = before.substr(before.find_last_of("[](),;0123456789") + 1);
      const std::string_view following = low().substr(std::min(low().size(), span.end), kAfterNumber);
      // In "exceeded the 100ms timeout for 8.39s", the duration after "for" is the measured one.
      const bool lasted = near.ends_with(" for ");
      const bool of_bound =
          mentions(near, {"limit", "thresh", "expect", "interval", "instead of", "less than", "timeout", "max", "allow",
                          "within", "more than", "at least", " > ", "every"});
      all.push_back(
          {at, ns,
           (of_bound && !lasted) || begins_with_any(following, {" timeout", " limit", " thresh", " interval"})});
    }
    at = low().find_first_of("0123456789", std::max(at + 1, span.end));
  }
  return all;
}

// How long the writer was paused, if the message states it: "local pause of 8123456789ns", "We slept 35000ms instead of
// 3000ms". 0 if it reports no pause.
std::int64_t MessageReader::own_pause() {
  std::vector<Stated> stated;
  for (const Statement& statement : statements_) {
    if (statement.entry->says != Says::stood) continue;
    if (is_possibility(low().substr(statement.begin, statement.end - statement.begin))) continue;
    if (stated.empty()) stated = spans();
    // "last active 5m ago" is a pause only if the message also states a limit, and is not about another node.
    if (mentions(low().substr(statement.begin, statement.end - statement.begin), {" ago"}) &&
        (names_another_node() || std::ranges::none_of(stated, &Stated::bound)))
      continue;
    for (const Stated& span : stated)
      if (span.at >= statement.begin && !span.bound) return std::llround(span.ns);
    // "no progress for 13s: the server has been frozen": the duration precedes, and it is the only one.
    if (const auto unbound = std::ranges::count(stated, false, &Stated::bound); unbound == 1)
      return std::llround(std::ranges::find(stated, false, &Stated::bound)->ns);
  }
  if (const Statement* hung = first(Says::hung)) {
    for (const Stated& span : spans())
      if (span.at >= hung->begin) return std::llround(span.ns);
    return kHungUnstated;
  }
  const Statement* woke = first(Says::woke);
  if (woke == nullptr || is_of_another_node(*woke) ||
      mentions(low().substr(woke->begin, woke->end - woke->begin), {" if ", " when ", " would "}))
    return 0;
  if (const std::int64_t duration = duration_after(woke->begin); duration > 0) return duration;
  meaning_.pause_unstated = true;
  return kHungUnstated;
}

// The duration of a suspension that the message states after `begin`; 0 if it states none. The words before the number
// distinguish it from other durations in such messages: the time that the resumption took, or the machine's uptime.
std::int64_t MessageReader::duration_after(std::size_t begin) const {
  for (const Stated& span : spans())
    if (span.at >= begin && !span.bound &&
        ends_with_any(low().substr(0, span.at), {" for ", " for about ", " slept ", " after "}))
      return std::llround(span.ns);
  return 0;
}

// True if the subject of the match is another node: "VM n2 was suspended".
bool MessageReader::is_of_another_node(const Statement& statement) const {
  return std::ranges::any_of(sentence_.words(), [&](const knowledge::Word& word) {
    return word.node == knowledge::kOtherNode && word.begin >= statement.begin && word.end <= statement.end;
  });
}

// How long the writer suspended another node: "resuming VM n2 again after 5 seconds". 0 if it reports no suspension.
std::int64_t MessageReader::other_pause() const {
  const Statement* statement = first(Says::suspends);
  if (const Statement* woke = first(Says::woke); statement == nullptr && woke != nullptr && is_of_another_node(*woke))
    statement = woke;
  if (statement == nullptr) return 0;
  const std::int64_t stated = duration_after(statement->begin);
  return stated > 0 ? stated : kHungUnstated;
}

// The duration of a disk operation that the message reports as slow. 0 if it reports none.
std::int64_t MessageReader::slow_disk() const {
  if (!has(Says::slow_disk)) return 0;
  double longest = 0, bound = 0;
  for (const Stated& stated : spans())
    (stated.bound ? bound : longest) = std::max(stated.bound ? bound : longest, stated.ns);
  if (longest == 0) longest = bound;
  if (longest == 0) return kSlowDiskUnstated;
  return longest >= kLeastSlowDisk ? std::llround(longest) : 0;
}

}  // namespace rose::logs
