#include "logs/clock_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/ascii.h"
#include "logs/spans.h"

namespace rose::logs {
namespace {

// Distances in characters. kWithin: the amount is at most this far after the match. kNearby: words that mark an amount
// as a limit, or give its sign, are at most this far before the match or after the amount.
constexpr std::size_t kWithin = 200, kNearby = 24;
constexpr double kLeastOff = 100e6;  // ns; smaller differences between clocks are normal
// ns; used instead of kLeastOff if the message says that the difference exceeds a limit ("clock skew 0.08s > max
// 0.05s")
constexpr double kLeastOffBeyondLimit = 10e6;
constexpr double kMostOff = 100.0 * 366 * 24 * 3600e9;
constexpr double kMoreThan = 2;  // factor for a message that states only the limit which the difference exceeds
constexpr std::int64_t kOffUnstated = 30'000'000'000;  // ns; used if the message reports a wrong clock but no amount

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// True for words of a limit: "max clock skew 5s" states the allowed difference and reports no wrong clock.
bool is_limit(std::string_view before) {
  return contains_any(before, {"max", "allow", "toler", "limit", "thresh", "bound"});
}

// True if a limit that the amount exceeds follows: "0.08s > max 0.05s", "80ms exceeds the limit of 50ms".
bool exceeds_limit(std::string_view following) {
  return following.starts_with(" > ") || following.starts_with(" >= ") ||
         contains_any(following, {"exceed", "more than", "larger than", "greater than"});
}

// 1 if the clock is ahead, -1 if it is behind, 0 if unknown. The sign of a difference from another node's clock is
// ambiguous: some programs subtract the other node's time from their own, and other programs do the reverse.
int sign_of(std::string_view low, std::size_t number, std::size_t end, bool own) {
  if (own && low[number - 1] == '+') return 1;
  if (own && low[number - 1] == '-' && !is_name_char(low[number - 2])) return -1;
  const std::string_view following = low.substr(end, kNearby);
  if (contains_any(following, {"ahead", "in the future", "too fast"})) return 1;
  if (contains_any(following, {"behind", "in the past", "too slow", "backward"})) return -1;
  return 0;
}

// True if `word` is one of the words in the entry's `clock` key.
bool is_kind(const knowledge::Entry& entry, std::string_view word) {
  return fmt::format(" {} ", entry.name).find(fmt::format(" {} ", word)) != std::string::npos;
}

}  // namespace

std::optional<ClockWords> read_clock_words(std::string_view low, std::span<const knowledge::Statement> statements) {
  for (const knowledge::Statement& statement : statements) {
    if (statement.entry->says != knowledge::Says::clock) continue;
    const std::size_t before = statement.begin - std::min(statement.begin, kNearby);
    if (is_limit(low.substr(before, statement.begin - before))) continue;
    const bool own = is_kind(*statement.entry, "own");
    const double times = is_kind(*statement.entry, "double") ? kMoreThan : 1;
    // The amount may be between the words of the match: "the clock is 5s behind".
    bool little = false;
    const std::size_t from = statement.begin + 1, until = std::min(low.size(), statement.end + kWithin);
    for (std::size_t at = from; at < until; ++at) {
      if (!is_digit(low[at])) continue;
      const Span span = read_span(low, at);
      const bool word = !is_alpha(low[at - 1]) && low[at - 1] != '_' && low[at - 1] != '.';
      const double least =
          exceeds_limit(low.substr(std::min(span.end, low.size()), kNearby)) ? kLeastOffBeyondLimit : kLeastOff;
      if (word && span.ns * times >= least && span.ns <= kMostOff) {
        const int sign = is_kind(*statement.entry, "back")    ? -1
                         : is_kind(*statement.entry, "forth") ? 1
                                                              : sign_of(low, at, span.end, own);
        const auto off = static_cast<std::int64_t>(std::llround(span.ns * times));
        return ClockWords{sign < 0 ? -off : off, sign == 0, own, is_kind(*statement.entry, "stepped")};
      }
      little = word && span.ns != 0;  // the amount is too small to matter
      if (little) break;
      at = std::max(at, span.end - 1);
    }
    if (!little && is_kind(*statement.entry, "unsaid")) return ClockWords{kOffUnstated, true, own, false};
  }
  return std::nullopt;
}

}  // namespace rose::logs
