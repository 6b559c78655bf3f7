// The parts that the parsers of times share: a cursor over the text, the names of months and zones, and the parsed date
// and time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ascii.h"
#include "base/units.h"
#include "logs/line/times.h"

namespace rose::logs {

inline constexpr std::int64_t kDay = 86'400 * kSecond;
inline constexpr int kPlaceholderYear = 1972;  // for times without a year; it is a leap year, so that every date exists

// Parses a text from left to right. After the first step that does not fit the text, ok() stays false.
class TimeCursor {
 public:
  explicit TimeCursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  [[nodiscard]] std::size_t digits() const {  // the number of digits at the cursor
    std::size_t n = 0;
    while (is_digit(peek(n))) ++n;
    return n;
  }
  void skip(std::size_t n) { at_ += n; }
  bool eat(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void need(bool fits) { ok_ = ok_ && fits; }
  void need(char c) { need(eat(c)); }
  // Parses a number of exactly `n` digits whose value is at most `most`.
  int number(std::size_t n, int most) {
    int value = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!is_digit(peek())) {
        ok_ = false;
        return 0;
      }
      value = value * 10 + (peek() - '0');
      ++at_;
    }
    need(value <= most);
    return value;
  }
  // Parses one or two digits.
  int short_number(int most) { return number(is_digit(peek(1)) ? 2 : 1, most); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// The month whose name is at the cursor, 1 to 12; 0 if there is none.
[[nodiscard]] unsigned month_name(TimeCursor& cursor);
[[nodiscard]] bool weekday_name(TimeCursor& cursor);

struct TimeZone {
  bool stands = false;  // the text has a zone; if its name is ambiguous, `known` is false
  bool known = false;
  std::int64_t ns = 0;
};

[[nodiscard]] TimeZone read_zone_here(TimeCursor& cursor);

// The parts that were parsed so far.
struct DateTime {
  int year = kPlaceholderYear;
  unsigned month = 1, day = 1;
  std::int64_t in_day = 0;  // time since midnight, in ns
  TimeKind kind = TimeKind::date_time;
};

[[nodiscard]] inline int year_of_two(int two) { return two < 90 ? 2000 + two : 1900 + two; }

// Converts the parts to a timestamp. If `zone_may_follow`, parses a zone at the cursor, too. Returns nothing if an
// earlier step of the cursor failed, or if the month or the day is out of range.
[[nodiscard]] std::optional<TimeStamp> stamp_of(TimeCursor& cursor, const DateTime& moment, bool zone_may_follow);

}  // namespace rose::logs
