#include "logs/clock_words.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/ascii.h"
#include "logs/spans.h"

namespace rose::logs {
namespace {

constexpr std::size_t kWithin = 200;  // characters behind the words, for the amount
constexpr std::size_t kNearby = 24;   // before the words, and behind the amount, for what it is
constexpr double kLeastOff = 100e6;   // ns: clocks differ by less everywhere
constexpr double kMostOff = 100.0 * 366 * 24 * 3600e9;
constexpr double kMoreThan = 2;  // times the bound that was passed

struct Phrase {
  std::string_view words;
  bool own = false, stepped = false;
  int sign = 0;  // 0: the text may say it
  double times = 1;
};

// Of their own clock speak Elasticsearch, Dovecot, Hazelcast, generators of ids, CockroachDB; of another one's etcd,
// Ceph, HBase, YugabyteDB.
constexpr std::array kPhrases = std::to_array<Phrase>({
    {"clock went backwards", true, true, -1},
    {"clock moved backwards", true, true, -1},
    {"time went backwards", true, true, -1},
    {"moved backwards by", true, true, -1},
    {"moved forwards by", true, true, 1},
    {"time jumped backward", true, true, -1},
    {"time jumped forward", true, true, 1},
    {"clock jumped backward", true, true, -1},
    {"clock jumped forward", true, true, 1},
    {"system time jump backward", true, true, -1},
    {"clock apparently jumped", true, true},
    {"clock synchronization error: this node is more than", true, false, 0, kMoreThan},
    {"clock-drift", false},
    {"clock drift", false},
    {"clock difference", false},
    {"clock skew", false},
    {"clock-skew", false},
    {"clock_skew", false},
    {"clock offset", false},
    {"time difference of", false},
    {"time skew", false},
    {"time drift", false},
    {"clocks differ by", false},
});

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// "max clock skew 5s": what is allowed, and no clock.
bool is_limit(std::string_view before) {
  return has_any(before, {"max", "allow", "toler", "limit", "thresh", "bound"});
}

// Of a difference from a peer's clock the sign alone says nothing: some write their own less the other's, and some the
// other way about.
int sign_of(std::string_view low, std::size_t number, std::size_t end, bool own) {
  if (own && low[number - 1] == '+') return 1;
  if (own && low[number - 1] == '-' && !is_name_char(low[number - 2])) return -1;
  const std::string_view behind = low.substr(end, kNearby);
  if (has_any(behind, {"ahead", "in the future", "too fast"})) return 1;
  if (has_any(behind, {"behind", "in the past", "too slow", "backward"})) return -1;
  return 0;
}

}  // namespace

std::optional<ClockWords> read_clock_words(std::string_view low) {
  for (const Phrase& phrase : kPhrases) {
    const std::size_t found = low.find(phrase.words);
    if (found == std::string_view::npos) continue;
    const std::size_t before = found - std::min(found, kNearby);
    if (is_limit(low.substr(before, found - before))) continue;
    const std::size_t from = found + phrase.words.size(), until = std::min(low.size(), from + kWithin);
    for (std::size_t at = from; at < until; ++at) {
      if (!is_digit(low[at])) continue;
      const Span span = read_span(low, at);
      const bool word = !is_alpha(low[at - 1]) && low[at - 1] != '_' && low[at - 1] != '.';
      if (word && span.ns * phrase.times >= kLeastOff && span.ns <= kMostOff) {
        const int sign = phrase.sign != 0 ? phrase.sign : sign_of(low, at, span.end, phrase.own);
        const auto off = static_cast<std::int64_t>(std::llround(span.ns * phrase.times));
        return ClockWords{sign < 0 ? -off : off, sign == 0, phrase.own, phrase.stepped};
      }
      if (word && span.ns != 0) break;  // an amount, and too little to matter
      at = std::max(at, span.end - 1);
    }
  }
  return std::nullopt;
}

}  // namespace rose::logs
