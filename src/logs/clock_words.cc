#include "logs/clock_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/ascii.h"
#include "logs/spans.h"

namespace rose::logs {
namespace {

constexpr std::size_t kWithin = 200;  // characters behind the words, for the amount
constexpr std::size_t kNearby = 24;   // before the words, and behind the amount, for what it is
constexpr double kLeastOff = 100e6;   // ns: clocks differ by less everywhere
constexpr double kMostOff = 100.0 * 366 * 24 * 3600e9;
constexpr double kMoreThan = 2;                        // times the bound that was passed
constexpr std::int64_t kOffUnstated = 30'000'000'000;  // ns: that it is wrong is said, and not how far

bool any_of_words(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// "max clock skew 5s": what is allowed, and no clock.
bool is_limit(std::string_view before) {
  return any_of_words(before, {"max", "allow", "toler", "limit", "thresh", "bound"});
}

// The sign of a difference from a peer's clock is ambiguous: some programs subtract the other's time from their own,
// and some the other way round.
int sign_of(std::string_view low, std::size_t number, std::size_t end, bool own) {
  if (own && low[number - 1] == '+') return 1;
  if (own && low[number - 1] == '-' && !is_name_char(low[number - 2])) return -1;
  const std::string_view behind = low.substr(end, kNearby);
  if (any_of_words(behind, {"ahead", "in the future", "too fast"})) return 1;
  if (any_of_words(behind, {"behind", "in the past", "too slow", "backward"})) return -1;
  return 0;
}

// The words of an entry's `clock`, between blanks.
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
    // "the clock is 5s behind": the amount may stand among the words.
    bool little = false;
    const std::size_t from = statement.begin + 1, until = std::min(low.size(), statement.end + kWithin);
    for (std::size_t at = from; at < until; ++at) {
      if (!is_digit(low[at])) continue;
      const Span span = read_span(low, at);
      const bool word = !is_alpha(low[at - 1]) && low[at - 1] != '_' && low[at - 1] != '.';
      if (word && span.ns * times >= kLeastOff && span.ns <= kMostOff) {
        const int sign = is_kind(*statement.entry, "back")    ? -1
                         : is_kind(*statement.entry, "forth") ? 1
                                                              : sign_of(low, at, span.end, own);
        const auto off = static_cast<std::int64_t>(std::llround(span.ns * times));
        return ClockWords{sign < 0 ? -off : off, sign == 0, own, is_kind(*statement.entry, "stepped")};
      }
      little = word && span.ns != 0;  // an amount, and too little to matter
      if (little) break;
      at = std::max(at, span.end - 1);
    }
    if (!little && is_kind(*statement.entry, "unsaid")) return ClockWords{kOffUnstated, true, own, false};
  }
  return std::nullopt;
}

}  // namespace rose::logs
