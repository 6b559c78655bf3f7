#include "logs/line/times.h"

#include "logs/line/time_parts.h"

namespace rose::logs {
namespace {

// Parses a fraction of a second, such as ".123456", ",123" or ":123", and returns it in ns; 0 if there is none.
std::int64_t fraction(TimeCursor& cursor) {
  const char mark = cursor.peek();
  if ((mark != '.' && mark != ',' && mark != ':') || !is_digit(cursor.peek(1))) return 0;
  if (mark == ':') {
    // Some Java servers write milliseconds after a colon, but the colon in "12:00:00:1" does not begin a fraction.
    TimeCursor ahead = cursor;
    ahead.skip(1);
    if (ahead.digits() != 3) return 0;
  }
  cursor.skip(1);
  std::int64_t ns = 0, unit = kSecond / 10;
  for (; is_digit(cursor.peek()); cursor.skip(1), unit /= 10) ns += unit * (cursor.peek() - '0');
  return ns;
}

// Parses "12:00:00", "12:00:00.123", or "12:00" followed by AM or PM.
void clock_time(TimeCursor& cursor, DateTime& moment) {
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
  TimeCursor half = cursor;
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
  // In text that was copied from a web page, the next part may follow without a blank: "10:32:39 PM2019-03-07".
  cursor.need(named || !is_digit(cursor.peek()));
  moment.in_day += ((hour * 60 + minute) * 60 + second) * kSecond;
}

// Skips the separator between a date and a time: ' ', 'T', '_', '-', '|', ':', ", ", " @ " (Kibana), several blanks.
void between(TimeCursor& cursor) {
  const char c = cursor.peek();
  if (c == 'T' || c == 't' || c == '_' || c == '-' || c == '|' || c == ':') {
    cursor.skip(1);
    if (c == ':') cursor.eat(':');  // Erlang: "5-Jun-2024::12:00:00"
    return;
  }
  cursor.eat(',');
  cursor.need(' ');
  if (cursor.peek() == '@' && cursor.peek(1) == ' ') cursor.skip(2);
  while (cursor.eat(' ')) continue;
}

// Parses an hour, a minute and a second of two digits each, with `apart` characters between them, then a fraction.
void time_of_pairs(TimeCursor& cursor, DateTime& moment, std::size_t apart) {
  const int hour = cursor.number(2, 24);
  cursor.skip(apart);
  const int minute = cursor.number(2, 59);
  cursor.skip(apart);
  const int second = cursor.number(2, 60);
  moment.in_day = ((hour * 60 + minute) * 60 + second) * kSecond + fraction(cursor);
}

bool plausible_year(int year) { return year >= 1990 && year <= 2100; }

// Parses "2024-06-05", "2024/06/05" or "2024.06.05", and the time after it.
std::optional<TimeStamp> year_first(TimeCursor cursor) {
  DateTime moment;
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
    time_of_pairs(cursor, moment, 1);
    return stamp_of(cursor, moment, true);
  }
  clock_time(cursor, moment);
  return stamp_of(cursor, moment, true);
}

// Parses "20240605T120000Z", "20240605 12:00:00", "240605 12:00:00", "081109 203615".
std::optional<TimeStamp> packed_date(TimeCursor cursor, std::size_t digits) {
  DateTime moment;
  moment.year = digits == 8 ? cursor.number(4, 2100) : year_of_two(cursor.number(2, 99));
  moment.month = static_cast<unsigned>(cursor.number(2, 12));
  moment.day = static_cast<unsigned>(cursor.number(2, 31));
  cursor.need(plausible_year(moment.year));
  between(cursor);
  if (!cursor.ok()) return std::nullopt;
  if (cursor.digits() == 6) time_of_pairs(cursor, moment, 0);
  else clock_time(cursor, moment);
  return stamp_of(cursor, moment, true);
}

// Parses "05/Jun/2024:12:00:00 +0000", "22 Nov 2026 18:12:19.088", "5-Jun-2024::12:00:00",
// "11-Mar 09:58".
std::optional<TimeStamp> day_and_month_name(TimeCursor cursor) {
  DateTime moment;
  moment.day = static_cast<unsigned>(cursor.short_number(31));
  const char mark = cursor.peek();
  cursor.need(mark == '/' || mark == ' ' || mark == '-');
  cursor.skip(1);
  moment.month = month_name(cursor);
  cursor.need(moment.month != 0);
  if (mark == '-' && cursor.peek() == ' ' && cursor.peek(3) == ':') {  // "11-Mar 09:58": Bacula, without seconds
    cursor.skip(1);
    moment.kind = TimeKind::no_year;
    const int hour = cursor.number(2, 24);
    cursor.skip(1);
    const int minute = cursor.number(2, 59);
    const int second = cursor.eat(':') ? cursor.number(2, 60) : 0;
    moment.in_day = ((hour * 60 + minute) * 60 + second) * kSecond;
    return stamp_of(cursor, moment, true);
  }
  cursor.need(mark);
  if (mark == ' ' && cursor.digits() == 2 && cursor.peek(2) == ':') {  // "14 Oct 03:00:46.069": Redis up to version 4
    moment.kind = TimeKind::no_year;
  } else {
    moment.year = cursor.number(4, 2100);
    cursor.need(plausible_year(moment.year));
    between(cursor);
  }
  clock_time(cursor, moment);
  return stamp_of(cursor, moment, true);
}

// Parses "06/05/2024 12:00:00", "5.6.2024 12:00:00", "24/06/05 12:00:00", "06-05 12:00:00.123". If both numbers could
// be the month, the month is the first number if a '/' follows (the American order), and otherwise the second number.
std::optional<TimeStamp> numbers_only(TimeCursor cursor) {
  DateTime moment;
  const int first = cursor.short_number(99);
  const char mark = cursor.peek();
  cursor.need(mark == '/' || mark == '.' || mark == '-');
  cursor.skip(1);
  const int second = cursor.short_number(31);
  if (!cursor.ok()) return std::nullopt;
  if (cursor.peek() != mark) {
    // geth writes '|'; TDengine, and HTCondor before version 8, write "03/11 09:40:00.123456"; Snort writes
    // "03/11-09:40:00.123456", and others "03/11-09:40.00.123"
    cursor.need((mark == '-' && (cursor.peek() == ' ' || cursor.peek() == '|')) ||
                (mark == '/' && (cursor.peek() == ' ' || cursor.peek() == '-')));
    moment.kind = TimeKind::no_year;
    const bool month_first = mark == '-' || first <= 12;
    moment.month = static_cast<unsigned>(month_first ? first : second);
    moment.day = static_cast<unsigned>(month_first ? second : first);
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
      moment.day = static_cast<unsigned>(cursor.short_number(31));
    }
    cursor.need(plausible_year(moment.year));
  }
  const bool dash = mark == '/' && cursor.peek() == '-';
  between(cursor);
  if (dash && cursor.peek(2) == ':' && cursor.peek(5) == '.') {  // "03/11-09:40.00.123"
    time_of_pairs(cursor, moment, 1);
    return stamp_of(cursor, moment, true);
  }
  clock_time(cursor, moment);
  return stamp_of(cursor, moment, true);
}

// Parses "0311/094000.123" and "0311/094000", as Chromium's version of glog writes them.
std::optional<TimeStamp> month_and_day(TimeCursor cursor) {
  DateTime moment;
  moment.kind = TimeKind::no_year;
  moment.month = static_cast<unsigned>(cursor.number(2, 12));
  moment.day = static_cast<unsigned>(cursor.number(2, 31));
  cursor.need('/');
  cursor.need(cursor.digits() == 6);
  time_of_pairs(cursor, moment, 0);
  return stamp_of(cursor, moment, false);
}

std::optional<TimeStamp> time_only(TimeCursor cursor) {
  DateTime moment;
  moment.kind = TimeKind::no_date;
  clock_time(cursor, moment);
  return stamp_of(cursor, moment, false);
}

// Parses seconds, milliseconds, microseconds or nanoseconds since 1970. The number of digits determines the unit, for
// the years 2001 to 2096.
std::optional<TimeStamp> since_1970(TimeCursor cursor, std::size_t digits) {
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
  if (is_alpha(cursor.peek())) return std::nullopt;  // then it is an id
  stamp.length = cursor.at();
  return stamp;
}

// Parses "Jun  5 12:00:00", "Jun 05 2024 12:00:00", "Jun 05, 2024 12:00:00 PM", "Wed Jun  5 12:00:00.123 2024", "Wed,
// 05 Jun 2024 ...".
std::optional<TimeStamp> name_first(TimeCursor cursor) {
  DateTime moment;
  const bool weekday = weekday_name(cursor);
  if (weekday) {
    if (cursor.eat(',')) {
      cursor.need(' ');
      if (!cursor.ok() || !is_digit(cursor.peek())) return std::nullopt;
      const std::size_t before = cursor.at();
      auto stamp = day_and_month_name(TimeCursor(cursor.rest()));
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
    if (cursor.peek() == '@' && cursor.peek(1) == ' ') cursor.skip(2);  // Kibana
  }
  cursor.need(!comma || moment.kind == TimeKind::date_time);
  clock_time(cursor, moment);
  if (moment.kind == TimeKind::date_time) return stamp_of(cursor, moment, true);
  // ctime and date print the year at the end, optionally with a zone before it.
  auto stamp = stamp_of(cursor, moment, true);
  TimeCursor tail = cursor;
  if (!stamp || !weekday || !tail.eat(' ') || tail.digits() != 4) return stamp;
  moment.year = tail.number(4, 2100);
  if (!tail.ok() || !plausible_year(moment.year)) return stamp;
  moment.kind = TimeKind::date_time;
  const bool zoned = stamp->zoned;
  const std::int64_t moved = stamp->ns - (days_of(kPlaceholderYear, moment.month, moment.day) * kDay + moment.in_day);
  stamp = stamp_of(tail, moment, false);
  if (stamp) {
    stamp->zoned = zoned;
    stamp->ns += moved;
  }
  return stamp;
}

// Parses TAI64N, the time format of multilog and svlogd: "@400000006661a5f03b9aca00".
std::optional<TimeStamp> tai64n(std::string_view text) {
  constexpr std::size_t kLength = 25;
  constexpr std::int64_t kEpoch = std::int64_t{1} << 62;
  constexpr std::int64_t kAhead = 37;  // TAI has been this many seconds ahead of UTC since 2017
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

// Parses hexadecimal seconds and nanoseconds, as slapd of OpenLDAP writes them: "6b0877fc.0a864bc4 0x7f8e950ba6c0 ...".
std::optional<TimeStamp> hex_since_1970(std::string_view text) {
  constexpr std::size_t kDigits = 8, kLength = 2 * kDigits + 1;
  // Seconds: a time in 2001. The digits of a date ("20260102"), taken as a hexadecimal number, give a smaller value.
  constexpr std::uint64_t kLeast = 1'000'000'000;
  if (text.size() <= kLength || text[kDigits] != '.' || text[kLength] != ' ') return std::nullopt;
  std::uint64_t seconds = 0, ns = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    if (i == kDigits) continue;
    const int digit = hex_digit(text[i]);
    if (digit < 0) return std::nullopt;
    std::uint64_t& part = i < kDigits ? seconds : ns;
    part = part * 16 + static_cast<unsigned>(digit);
  }
  if (seconds < kLeast || ns >= static_cast<std::uint64_t>(kSecond)) return std::nullopt;
  TimeStamp stamp;
  stamp.zoned = true;
  stamp.ns = static_cast<std::int64_t>(seconds) * kSecond + static_cast<std::int64_t>(ns);
  stamp.length = kLength;
  return stamp;
}

}  // namespace

// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
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
  if (is_alpha(first)) return name_first(TimeCursor(text));
  if (first == '@') return tai64n(text);
  if (!is_digit(first)) return std::nullopt;
  if (const std::optional<TimeStamp> hex = hex_since_1970(text)) return hex;
  const TimeCursor cursor(text);
  const std::size_t digits = cursor.digits();
  const char after = cursor.peek(digits);
  switch (digits) {
    case 1:
    case 2:
      if (after == ':') return time_only(cursor);
      if (after == ' ' || is_alpha(cursor.peek(digits + 1))) return day_and_month_name(cursor);
      return numbers_only(cursor);
    case 4:
      if (after == '/')
        if (const auto packed = month_and_day(cursor)) return packed;
      return year_first(cursor);
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
  TimeCursor cursor(text);
  const TimeZone zone = read_zone_here(cursor);
  if (!zone.known || !cursor.rest().empty()) return std::nullopt;
  return zone.ns;
}

}  // namespace rose::logs
