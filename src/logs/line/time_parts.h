// What readers of times share: a cursor over the text, names of months and zones, and the moment that was read so far.
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
inline constexpr int kStandInYear = 1972;  // of times that have none: a leap year, so that every date exists

// Reads from the left; every step that does not fit makes it fail for good.
class TimeCursor {
 public:
  explicit TimeCursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  [[nodiscard]] std::size_t digits() const {  // that stand here
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
  // A number of exactly `n` digits, at most `most`.
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
  // One or two digits.
  int short_number(int most) { return number(is_digit(peek(1)) ? 2 : 1, most); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// 1 to 12; 0: no month's name stands here.
[[nodiscard]] unsigned month_name(TimeCursor& cursor);
[[nodiscard]] bool weekday_name(TimeCursor& cursor);

struct TimeZone {
  bool stands = false;  // something that is a zone stands here
  bool known = false;
  std::int64_t ns = 0;
};

[[nodiscard]] TimeZone read_zone_here(TimeCursor& cursor);

// What was read so far.
struct DateTime {
  int year = kStandInYear;
  unsigned month = 1, day = 1;
  std::int64_t in_day = 0;  // ns
  TimeKind kind = TimeKind::date_time;
};

[[nodiscard]] inline int year_of_two(int two) { return two < 90 ? 2000 + two : 1900 + two; }

// The moment, and a zone where one may follow; nothing where the cursor failed, or no such date is possible.
[[nodiscard]] std::optional<TimeStamp> stamp_of(TimeCursor& cursor, const DateTime& moment, bool zone_may_follow);

}  // namespace rose::logs
