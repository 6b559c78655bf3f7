#include "logs/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/units.h"

namespace rose::logs {
namespace {

constexpr std::int64_t kDay = 86'400 * kSecond;
constexpr int kStandInYear = 1972;  // of times that have none: a leap year, so that every date exists

// Reads from the left; every step that does not fit makes it fail for good.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
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

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

bool same_letters(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) {
           return (a | 0x20) == (b | 0x20);
         });
}

// 1 to 12; 0: no month's name stands here.
unsigned month_name(Cursor& cursor) {
  for (unsigned i = 0; i < kMonths.size(); ++i) {
    if (!same_letters(cursor.rest(), kMonths[i])) continue;
    cursor.skip(3);
    return i + 1;
  }
  return 0;
}

bool weekday_name(Cursor& cursor) {
  for (const std::string_view name : kWeekdays) {
    if (!same_letters(cursor.rest(), name)) continue;
    cursor.skip(3);
    return true;
  }
  return false;
}

struct ZoneName {
  std::string_view name;
  int minutes;  // kManyMeanings: more than one place has it
};
constexpr int kManyMeanings = 10'000;
constexpr std::array kZoneNames = std::to_array<ZoneName>(
    {{"UTC", 0},    {"GMT", 0},    {"CET", 60},   {"CEST", 120}, {"EET", 120}, {"EEST", 180}, {"WET", 0},
     {"WEST", 60},  {"MSK", 180},  {"EST", -300}, {"EDT", -240}, {"MDT", -360}, {"PST", -480}, {"PDT", -420},
     {"JST", 540},  {"KST", 540},  {"HKT", 480},  {"SGT", 480},  {"AEST", 600}, {"AEDT", 660}, {"NZST", 720},
     {"NZDT", 780}, {"CST", kManyMeanings}, {"CDT", kManyMeanings}, {"IST", kManyMeanings}, {"BST", kManyMeanings},
     {"MST", kManyMeanings}, {"AST", kManyMeanings}});

struct Zone {
  bool stands = false;  // something that is a zone stands here
  bool known = false;
  std::int64_t ns = 0;
};

Zone read_zone_here(Cursor& cursor) {
  const char sign = cursor.peek();
  if ((sign == 'Z' || sign == 'z') && !is_alpha(cursor.peek(1)) && !is_digit(cursor.peek(1))) {
    cursor.skip(1);
    return {true, true, 0};
  }
  if (sign == '+' || sign == '-') {
    Cursor zone = cursor;
    zone.skip(1);
    const std::size_t digits = zone.digits();
    if (digits != 2 && digits != 4) return {};
    const int hours = zone.number(2, 15);
    int minutes = 0;
    if (digits == 4) {
      minutes = zone.number(2, 59);
    } else if (zone.peek() == ':' && is_digit(zone.peek(1)) && is_digit(zone.peek(2))) {
      zone.skip(1);
      minutes = zone.number(2, 59);
    }
    if (!zone.ok() || is_digit(zone.peek())) return {};
    cursor = zone;
    return {true, true, (sign == '-' ? -1 : 1) * (hours * 60 + minutes) * 60 * kSecond};
  }
  std::size_t letters = 0;
  while (is_upper(cursor.peek(letters))) ++letters;
  if (letters < 3 || letters > 4 || is_alpha(cursor.peek(letters)) || is_digit(cursor.peek(letters))) return {};
  const std::string_view word = cursor.rest().substr(0, letters);
  for (const ZoneName& one : kZoneNames) {
    if (one.name != word) continue;
    cursor.skip(letters);
    if (one.minutes == kManyMeanings) return {true, false, 0};
    return {true, true, one.minutes * 60 * kSecond};
  }
  return {};
}

// What was read so far.
struct Moment {
  int year = kStandInYear;
  unsigned month = 1, day = 1;
  std::int64_t in_day = 0;  // ns
  TimeKind kind = TimeKind::date_time;
};

// ".123456", ",123" or ":123" as ns.
std::int64_t fraction(Cursor& cursor) {
  const char mark = cursor.peek();
  if ((mark != '.' && mark != ',' && mark != ':') || !is_digit(cursor.peek(1))) return 0;
  if (mark == ':') {
    // Milliseconds of some Java servers; "12:00:00:1" is no time of day with a fraction.
    Cursor ahead = cursor;
    ahead.skip(1);
    if (ahead.digits() != 3) return 0;
  }
  cursor.skip(1);
  std::int64_t ns = 0, unit = kSecond / 10;
  for (; is_digit(cursor.peek()); cursor.skip(1), unit /= 10) ns += unit * (cursor.peek() - '0');
  return ns;
}

// "12:00:00", "12:00:00.123", "12:00" with AM or PM.
void clock_time(Cursor& cursor, Moment& moment) {
  int hour = cursor.short_number(24);
  cursor.need(':');
  const int minute = cursor.number(2, 59);
  int second = 0;
  const bool seconds = cursor.ok() && cursor.peek() == ':' && is_digit(cursor.peek(1));
  if (seconds) {
    cursor.skip(1);
    second = cursor.number(2, 60);  // 60: a leap second
    moment.in_day = fraction(cursor);
  }
  Cursor half = cursor;
  half.eat(' ');
  const char letter = static_cast<char>(half.peek() & ~0x20);
  const bool named = (letter == 'A' || letter == 'P') && (half.peek(1) & ~0x20) == 'M' && !is_alpha(half.peek(2));
  if (named) {
    cursor = half;
    cursor.skip(2);
    cursor.need(hour >= 1 && hour <= 12);
    hour = hour % 12 + (letter == 'P' ? 12 : 0);
  }
  cursor.need(seconds || named);
  cursor.need(!is_digit(cursor.peek()));
  moment.in_day += ((hour * 60 + minute) * 60 + second) * kSecond;
}

// The sign between a date and a time: ' ', 'T', '_', '-', '|', ':', ", ", several spaces.
void between(Cursor& cursor) {
  const char c = cursor.peek();
  if (c == 'T' || c == 't' || c == '_' || c == '-' || c == '|' || c == ':') {
    cursor.skip(1);
    if (c == ':') cursor.eat(':');  // Erlang: "5-Jun-2024::12:00:00"
    return;
  }
  cursor.eat(',');
  cursor.need(' ');
  while (cursor.eat(' ')) continue;
}

bool plausible_year(int year) { return year >= 1990 && year <= 2100; }

int year_of_two(int two) { return two < 90 ? 2000 + two : 1900 + two; }

std::optional<TimeStamp> finish(Cursor& cursor, const Moment& moment, bool zone_may_follow) {
  if (!cursor.ok() || moment.month < 1 || moment.month > 12 || moment.day < 1 || moment.day > 31) return std::nullopt;
  TimeStamp stamp;
  stamp.kind = moment.kind;
  const std::int64_t days = moment.kind == TimeKind::no_date ? 0 : days_of(moment.year, moment.month, moment.day);
  stamp.ns = days * kDay + moment.in_day;
  if (zone_may_follow) {
    Cursor zoned = cursor;
    const bool space = zoned.eat(' ');
    const char c = zoned.peek();
    const Zone zone = space && (c == 'Z' || c == 'z') ? Zone{} : read_zone_here(zoned);
    if (zone.stands) {
      cursor = zoned;
      stamp.zoned = zone.known;
      stamp.ns -= zone.known ? zone.ns : 0;
    }
  }
  stamp.length = cursor.at();
  return stamp;
}

// "2024-06-05", "2024/06/05", "2024.06.05" and what follows.
std::optional<TimeStamp> year_first(Cursor cursor) {
  Moment moment;
  moment.year = cursor.number(4, 2100);
  const char mark = cursor.peek();
  cursor.need(mark == '-' || mark == '/' || mark == '.');
  cursor.skip(1);
  moment.month = static_cast<unsigned>(cursor.short_number(12));
  cursor.need(mark);
  moment.day = static_cast<unsigned>(cursor.short_number(31));
  cursor.need(plausible_year(moment.year));
  between(cursor);
  if (cursor.ok() && cursor.peek(2) == '.' && cursor.peek(5) == '.') {  // "2005-06-03-15.42.50.363779"
    const int hour = cursor.number(2, 24);
    cursor.skip(1);
    const int minute = cursor.number(2, 59);
    cursor.skip(1);
    const int second = cursor.number(2, 60);
    moment.in_day = ((hour * 60 + minute) * 60 + second) * kSecond + fraction(cursor);
    return finish(cursor, moment, true);
  }
  clock_time(cursor, moment);
  return finish(cursor, moment, true);
}

// "20240605T120000Z", "20240605 12:00:00", "240605 12:00:00", "081109 203615".
std::optional<TimeStamp> packed_date(Cursor cursor, std::size_t digits) {
  Moment moment;
  moment.year = digits == 8 ? cursor.number(4, 2100) : year_of_two(cursor.number(2, 99));
  moment.month = static_cast<unsigned>(cursor.number(2, 12));
  moment.day = static_cast<unsigned>(cursor.number(2, 31));
  cursor.need(plausible_year(moment.year));
  between(cursor);
  if (!cursor.ok()) return std::nullopt;
  if (cursor.digits() == 6) {
    const int hour = cursor.number(2, 24);
    const int minute = cursor.number(2, 59);
    const int second = cursor.number(2, 60);
    moment.in_day = ((hour * 60 + minute) * 60 + second) * kSecond + fraction(cursor);
  } else {
    clock_time(cursor, moment);
  }
  return finish(cursor, moment, true);
}

// "05/Jun/2024:12:00:00 +0000", "22 Nov 2026 18:12:19.088", "5-Jun-2024::12:00:00".
std::optional<TimeStamp> day_and_month_name(Cursor cursor) {
  Moment moment;
  moment.day = static_cast<unsigned>(cursor.short_number(31));
  const char mark = cursor.peek();
  cursor.need(mark == '/' || mark == ' ' || mark == '-');
  cursor.skip(1);
  moment.month = month_name(cursor);
  cursor.need(moment.month != 0);
  cursor.need(mark);
  moment.year = cursor.number(4, 2100);
  cursor.need(plausible_year(moment.year));
  between(cursor);
  clock_time(cursor, moment);
  return finish(cursor, moment, true);
}

// "06/05/2024 12:00:00", "5.6.2024 12:00:00", "24/06/05 12:00:00", "06-05 12:00:00.123". Where both could be the month: after
// '/' the first is, as in America, else the second.
std::optional<TimeStamp> numbers_only(Cursor cursor) {
  Moment moment;
  const int first = cursor.short_number(99);
  const char mark = cursor.peek();
  cursor.need(mark == '/' || mark == '.' || mark == '-');
  cursor.skip(1);
  const int second = cursor.short_number(31);
  if (!cursor.ok()) return std::nullopt;
  if (cursor.peek() != mark) {
    cursor.need(mark == '-' && cursor.peek() == ' ');
    moment.kind = TimeKind::no_year;
    moment.month = static_cast<unsigned>(first);
    moment.day = static_cast<unsigned>(second);
  } else {
    cursor.skip(1);
    const std::size_t digits = cursor.digits();
    if (digits == 4) {
      moment.year = cursor.number(4, 2100);
      const bool month_first = first <= 12 && (second > 12 || mark == '/');
      moment.month = static_cast<unsigned>(month_first ? first : second);
      moment.day = static_cast<unsigned>(month_first ? second : first);
    } else {
      moment.year = year_of_two(first);
      moment.month = static_cast<unsigned>(second);
      moment.day = static_cast<unsigned>(cursor.number(2, 31));
    }
    cursor.need(plausible_year(moment.year));
  }
  between(cursor);
  clock_time(cursor, moment);
  return finish(cursor, moment, true);
}

std::optional<TimeStamp> time_only(Cursor cursor) {
  Moment moment;
  moment.kind = TimeKind::no_date;
  clock_time(cursor, moment);
  return finish(cursor, moment, false);
}

// Seconds, milliseconds, microseconds or nanoseconds since 1970, told by how many digits there are (2001 to 2096).
std::optional<TimeStamp> since_1970(Cursor cursor, std::size_t digits) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < digits; ++i) value = value * 10 + (cursor.peek(i) - '0');
  cursor.skip(digits);
  const std::int64_t unit = digits == 10 ? kSecond : digits == 13 ? 1'000'000 : digits == 16 ? 1'000 : 1;
  const std::int64_t seconds = value / (kSecond / unit);
  if (seconds < 1'000'000'000 || seconds > 4'000'000'000) return std::nullopt;
  TimeStamp stamp;
  stamp.zoned = true;
  stamp.ns = value * unit;
  if (digits == 10) stamp.ns += fraction(cursor);
  if (is_alpha(cursor.peek())) return std::nullopt;  // an id
  stamp.length = cursor.at();
  return stamp;
}

// "Jun  5 12:00:00", "Jun 05 2024 12:00:00", "Jun 05, 2024 12:00:00 PM", "Wed Jun  5 12:00:00.123 2024", "Wed, 05 Jun 2024 ...".
std::optional<TimeStamp> name_first(Cursor cursor) {
  Moment moment;
  const bool weekday = weekday_name(cursor);
  if (weekday) {
    if (cursor.eat(',')) {
      cursor.need(' ');
      if (!cursor.ok() || !is_digit(cursor.peek())) return std::nullopt;
      const std::size_t before = cursor.at();
      auto stamp = day_and_month_name(Cursor(cursor.rest()));
      if (stamp) stamp->length += before;
      return stamp;
    }
    cursor.need(' ');
  }
  moment.month = month_name(cursor);
  cursor.need(moment.month != 0 && cursor.peek() == ' ');
  if (!cursor.ok()) return std::nullopt;
  while (cursor.eat(' ')) continue;
  moment.day = static_cast<unsigned>(cursor.short_number(31));
  const bool comma = cursor.eat(',');
  cursor.need(' ');
  moment.kind = TimeKind::no_year;
  if (cursor.digits() == 4) {
    moment.year = cursor.number(4, 2100);
    moment.kind = TimeKind::date_time;
    cursor.need(plausible_year(moment.year));
    cursor.eat(',');
    cursor.need(' ');
  }
  cursor.need(!comma || moment.kind == TimeKind::date_time);
  clock_time(cursor, moment);
  if (moment.kind == TimeKind::date_time) return finish(cursor, moment, true);
  // The year may stand behind, with a zone before it: of ctime and date.
  auto stamp = finish(cursor, moment, true);
  Cursor behind = cursor;
  if (!stamp || !weekday || !behind.eat(' ') || behind.digits() != 4) return stamp;
  moment.year = behind.number(4, 2100);
  if (!behind.ok() || !plausible_year(moment.year)) return stamp;
  moment.kind = TimeKind::date_time;
  const bool zoned = stamp->zoned;
  const std::int64_t moved = stamp->ns - (days_of(kStandInYear, moment.month, moment.day) * kDay + moment.in_day);
  stamp = finish(behind, moment, false);
  if (stamp) {
    stamp->zoned = zoned;
    stamp->ns += moved;
  }
  return stamp;
}

// "@400000006661a5f03b9aca00": TAI64N, of multilog and svlogd.
std::optional<TimeStamp> tai64n(std::string_view text) {
  constexpr std::size_t kLength = 25;
  constexpr std::int64_t kEpoch = std::int64_t{1} << 62;
  constexpr std::int64_t kAhead = 37;  // TAI is ahead of UTC by so many seconds since 2017
  if (text.size() < kLength) return std::nullopt;
  std::uint64_t seconds = 0, ns = 0;
  for (std::size_t i = 1; i < kLength; ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) return std::nullopt;
    std::uint64_t& part = i <= 16 ? seconds : ns;
    part = part * 16 + static_cast<unsigned>(digit);
  }
  const std::int64_t since = static_cast<std::int64_t>(seconds) - kEpoch - kAhead;
  if (seconds > static_cast<std::uint64_t>(INT64_MAX) || ns >= static_cast<std::uint64_t>(kSecond)) return std::nullopt;
  if (since < 0 || since > 4'200'000'000) return std::nullopt;
  TimeStamp stamp;
  stamp.zoned = true;
  stamp.ns = since * kSecond + static_cast<std::int64_t>(ns);
  stamp.length = kLength;
  return stamp;
}

}  // namespace

// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
std::int64_t days_of(int year, unsigned month, unsigned day) {
  year -= month <= 2 ? 1 : 0;
  const int era = (year >= 0 ? year : year - 399) / 400;
  const auto of_era = static_cast<unsigned>(year - era * 400);
  const unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const unsigned day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
  return std::int64_t{era} * 146'097 + static_cast<std::int64_t>(day_of_era) - 719'468;
}

void date_of(std::int64_t days, int& year, unsigned& month, unsigned& day) {
  days += 719'468;
  const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const auto of_era = static_cast<unsigned>(days - era * 146'097);
  const unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  const unsigned of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted = (5 * of_year + 2) / 153;
  day = of_year - (153 * shifted + 2) / 5 + 1;
  month = shifted < 10 ? shifted + 3 : shifted - 9;
  year = static_cast<int>(year_of_era) + static_cast<int>(era) * 400 + (month <= 2 ? 1 : 0);
}

std::optional<TimeStamp> read_time(std::string_view text) {
  if (text.size() < 6) return std::nullopt;
  const char first = text[0];
  if (is_alpha(first)) return name_first(Cursor(text));
  if (first == '@') return tai64n(text);
  if (!is_digit(first)) return std::nullopt;
  const Cursor cursor(text);
  const std::size_t digits = cursor.digits();
  const char after = cursor.peek(digits);
  switch (digits) {
    case 1:
    case 2:
      if (after == ':') return time_only(cursor);
      if (after == ' ' || is_alpha(cursor.peek(digits + 1))) return day_and_month_name(cursor);
      return numbers_only(cursor);
    case 4: return year_first(cursor);
    case 6:
    case 8: return packed_date(cursor, digits);
    case 10:
    case 13:
    case 16:
    case 19: return since_1970(cursor, digits);
    default: return std::nullopt;
  }
}

std::optional<std::int64_t> read_zone(std::string_view text) {
  Cursor cursor(text);
  const Zone zone = read_zone_here(cursor);
  if (!zone.known || !cursor.rest().empty()) return std::nullopt;
  return zone.ns;
}

namespace {

constexpr std::string_view kFormLetters = "YymdeHIMSfLpbBaAjzZsT%";

}  // namespace

std::string time_form_problem(std::string_view form) {
  bool any = false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') continue;
    if (i + 1 == form.size()) return "ends with '%'";
    const char letter = form[++i];
    if (kFormLetters.find(letter) == std::string_view::npos)
      return fmt::format("has '%{}', accepted are %Y %y %m %d %e %b %B %a %A %H %I %M %S %f %L %p %z %Z %s %T and %%", letter);
    any = any || letter == 'H' || letter == 'I' || letter == 's' || letter == 'T';
  }
  return any ? "" : "has no time of day: %H, %I, %T or %s is needed";
}

namespace {

// Reads a time by its form, letter by letter.
class FormReader {
 public:
  explicit FormReader(std::string_view text) : cursor_(text) {}

  std::optional<TimeStamp> read(std::string_view form) {
    for (std::size_t i = 0; i < form.size() && cursor_.ok(); ++i) {
      if (form[i] == ' ') {
        cursor_.need(' ');
        while (cursor_.eat(' ')) continue;
      } else if (form[i] != '%' || i + 1 == form.size()) {
        cursor_.need(form[i]);
      } else {
        letter(form[++i]);
      }
    }
    return put_together();
  }

 private:
  void letter(char c) {
    switch (c) {
      case 'Y': moment_.year = cursor_.number(4, 2100), year_ = true; break;
      case 'y': moment_.year = year_of_two(cursor_.number(2, 99)), year_ = true; break;
      case 'm': moment_.month = static_cast<unsigned>(cursor_.short_number(12)), date_ = true; break;
      case 'd':
      case 'e':
        while (cursor_.eat(' ')) continue;
        moment_.day = static_cast<unsigned>(cursor_.short_number(31)), date_ = true;
        break;
      case 'b':
      case 'B': named_month(); break;
      case 'a':
      case 'A': cursor_.need(skip_letters() != 0); break;
      case 'H':
      case 'I': hour_ = cursor_.short_number(24); break;
      case 'M': minute_ = cursor_.number(2, 59); break;
      case 'S': second_ = cursor_.number(2, 60); break;
      case 'T': time_of_day(); break;
      case 'L': part_ = std::int64_t{cursor_.number(3, 999)} * 1'000'000; break;
      case 'f': part_of_second(); break;
      case 'p': half_of_day(); break;
      case 'z':
      case 'Z': zone(); break;
      case 's': since_1970(); break;
      case 'j': (void)cursor_.number(3, 366); break;
      default: cursor_.need('%'); break;
    }
  }

  std::size_t skip_letters() {
    std::size_t n = 0;
    while (is_alpha(cursor_.peek(n))) ++n;
    cursor_.skip(n);
    return n;
  }

  void named_month() {
    moment_.month = month_name(cursor_), date_ = true;
    cursor_.need(moment_.month != 0);
    skip_letters();
  }

  void time_of_day() {
    hour_ = cursor_.short_number(24);
    cursor_.need(':');
    minute_ = cursor_.number(2, 59);
    cursor_.need(':');
    second_ = cursor_.number(2, 60);
  }

  void part_of_second() {
    cursor_.need(is_digit(cursor_.peek()));
    part_ = 0;
    for (std::int64_t unit = kSecond / 10; is_digit(cursor_.peek()); cursor_.skip(1), unit /= 10) part_ += unit * (cursor_.peek() - '0');
  }

  void half_of_day() {
    const char first = static_cast<char>(cursor_.peek() & ~0x20);
    cursor_.need((first == 'A' || first == 'P') && (cursor_.peek(1) & ~0x20) == 'M');
    half_ = true;
    pm_ = first == 'P';
    cursor_.skip(2);
  }

  void zone() {
    const Zone here = read_zone_here(cursor_);
    cursor_.need(here.stands);
    zoned_ = here.known;
    zone_ns_ = here.ns;
  }

  void since_1970() {
    const std::size_t digits = cursor_.digits();
    cursor_.need(digits >= 9 && digits <= 10);
    if (!cursor_.ok()) return;
    std::int64_t value = 0;
    for (std::size_t n = 0; n < digits; ++n) value = value * 10 + (cursor_.peek(n) - '0');
    cursor_.skip(digits);
    epoch_ = value;
  }

  std::optional<TimeStamp> put_together() {
    if (half_) {
      cursor_.need(hour_ >= 1 && hour_ <= 12);
      hour_ = hour_ % 12 + (pm_ ? 12 : 0);
    }
    moment_.in_day = ((hour_ * 60 + minute_) * 60 + second_) * kSecond + part_;
    moment_.kind = !date_ ? TimeKind::no_date : !year_ ? TimeKind::no_year : TimeKind::date_time;
    auto stamp = finish(cursor_, moment_, false);
    if (!stamp) return stamp;
    if (epoch_) {
      stamp->kind = TimeKind::date_time;
      stamp->ns = *epoch_ * kSecond + part_;
      stamp->zoned = true;
    } else if (zoned_) {
      stamp->ns -= zone_ns_;
      stamp->zoned = true;
    }
    return stamp;
  }

  Cursor cursor_;
  Moment moment_;
  bool year_ = false, date_ = false;  // said
  std::int64_t hour_ = 0, minute_ = 0, second_ = 0;
  std::int64_t part_ = 0;  // of a second, in ns
  bool half_ = false, pm_ = false;
  bool zoned_ = false;
  std::int64_t zone_ns_ = 0;
  std::optional<std::int64_t> epoch_;
};

}  // namespace

std::optional<TimeStamp> read_time_as(std::string_view text, std::string_view form) { return FormReader(text).read(form); }

// The stand-in year is exchanged for the right one: the date stays, the day's number changes.
std::int64_t TimeKeeper::in_its_year(std::int64_t ns) {
  std::int64_t day_number = ns / kDay;
  if (ns % kDay < 0) --day_number;
  int year = 0;
  unsigned month = 0, day = 0;
  date_of(day_number, year, month, day);
  const int moved = year - kStandInYear;  // a zone may move the first and last hours of a year
  const auto in_year = [&](int wanted) { return days_of(wanted + moved, month, day) * kDay + (ns - day_number * kDay); };
  if (year_ == 0) {
    int now = 0;
    unsigned ignored = 0;
    date_of(written_ns_ / kDay, now, ignored, ignored);
    // A day more: the file may come from a place whose clock is ahead.
    year_ = in_year(now) <= written_ns_ + kDay ? now : now - 1;
  } else if (last_yearless_ != kNoTime && in_year(year_) < last_yearless_ - 182 * kDay) {
    ++year_;
  } else if (last_yearless_ != kNoTime && in_year(year_) > last_yearless_ + 182 * kDay) {
    return in_year(year_ - 1);  // a straggler of the year that has just ended
  }
  last_yearless_ = in_year(year_);
  return last_yearless_;
}

std::int64_t TimeKeeper::take(const TimeStamp& stamp) {
  const std::int64_t ns = stamp.ns - (stamp.zoned ? 0 : zone_ns_);
  switch (stamp.kind) {
    case TimeKind::date_time: return ns;
    case TimeKind::no_year: return in_its_year(ns);
    case TimeKind::no_date: {
      std::int64_t in_days = ns + days_ * kDay;
      if (last_dateless_ != kNoTime && in_days < last_dateless_ - kDay / 2) {
        ++days_;
        in_days += kDay;
      } else if (last_dateless_ != kNoTime && in_days > last_dateless_ + kDay / 2 && days_ > 0) {
        return in_days - kDay;  // a straggler of the day that has just ended
      }
      last_dateless_ = in_days;
      return in_days;
    }
    case TimeKind::since_boot: last_since_boot_ = std::max(last_since_boot_, stamp.ns); return stamp.ns;
  }
  return kNoTime;
}

std::int64_t TimeKeeper::offset(TimeKind kind) const {
  if (kind == TimeKind::since_boot) return last_since_boot_ == kNoTime ? 0 : written_ns_ - last_since_boot_;
  if (kind != TimeKind::no_date || last_dateless_ == kNoTime) return 0;
  // Whole days: the latest that leave the last line at or before the file's own time (an hour more, for clocks that differ).
  std::int64_t days = (written_ns_ + 3600 * kSecond - last_dateless_) / kDay;
  if ((written_ns_ + 3600 * kSecond - last_dateless_) % kDay < 0) --days;
  return days * kDay;
}

}  // namespace rose::logs
