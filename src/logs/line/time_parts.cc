#include "logs/line/time_parts.h"

#include <array>

namespace rose::logs {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
struct MonthName {
  std::string_view name;
  unsigned month;
};
// Month names in other languages, where they differ from English, because journalctl and syslog use the locale (glibc's
// %b, CLDR).
constexpr std::array kForeignMonths = std::to_array<MonthName>(
    {{"janv", 1}, {"ene", 1},  {"gen", 1},   {"févr", 2}, {"fev", 2},  {"fév", 2},  {"mars", 3}, {"mär", 3},
     {"mrt", 3},  {"mrz", 3},  {"avril", 4}, {"avr", 4},  {"abr", 4},  {"mai", 5},  {"mag", 5},  {"mei", 5},
     {"maj", 5},  {"juin", 6}, {"giu", 6},   {"juil", 7}, {"lug", 7},  {"août", 8}, {"ago", 8},  {"sept", 9},
     {"set", 9},  {"ott", 10}, {"okt", 10},  {"out", 10}, {"dic", 12}, {"dez", 12}, {"déc", 12}, {"des", 12}});
constexpr std::array<std::string_view, 7> kWeekdays = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

bool same_letters(std::string_view text, std::string_view word) {
  return text.size() >= word.size() &&
         std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) { return (a | 0x20) == (b | 0x20); });
}

struct ZoneName {
  std::string_view name;
  int minutes;  // minutes east of Greenwich; kManyMeanings: several zones have this name
};
constexpr int kManyMeanings = 10'000;
constexpr std::array kZoneNames = std::to_array<ZoneName>({{"UTC", 0},
                                                           {"GMT", 0},
                                                           {"CET", 60},
                                                           {"CEST", 120},
                                                           {"EET", 120},
                                                           {"EEST", 180},
                                                           {"WET", 0},
                                                           {"WEST", 60},
                                                           {"MSK", 180},
                                                           {"EST", -300},
                                                           {"EDT", -240},
                                                           {"MDT", -360},
                                                           {"PST", -480},
                                                           {"PDT", -420},
                                                           {"JST", 540},
                                                           {"KST", 540},
                                                           {"HKT", 480},
                                                           {"SGT", 480},
                                                           {"AEST", 600},
                                                           {"AEDT", 660},
                                                           {"NZST", 720},
                                                           {"NZDT", 780},
                                                           {"CST", kManyMeanings},
                                                           {"CDT", kManyMeanings},
                                                           {"IST", kManyMeanings},
                                                           {"BST", kManyMeanings},
                                                           {"MST", kManyMeanings},
                                                           {"AST", kManyMeanings}});

}  // namespace

unsigned month_name(TimeCursor& cursor) {
  for (const MonthName& foreign : kForeignMonths) {
    const std::string_view rest = cursor.rest();
    if (!same_letters(rest, foreign.name) || is_alpha(cursor.peek(foreign.name.size()))) continue;
    cursor.skip(foreign.name.size());
    cursor.eat('.');
    return foreign.month;
  }
  for (unsigned i = 0; i < kMonths.size(); ++i) {
    if (!same_letters(cursor.rest(), kMonths[i])) continue;
    cursor.skip(3);
    return i + 1;
  }
  return 0;
}

bool weekday_name(TimeCursor& cursor) {
  for (const std::string_view name : kWeekdays) {
    if (!same_letters(cursor.rest(), name)) continue;
    cursor.skip(3);
    return true;
  }
  return false;
}

TimeZone read_zone_here(TimeCursor& cursor) {
  const char sign = cursor.peek();
  if ((sign == 'Z' || sign == 'z') && !is_alpha(cursor.peek(1)) && !is_digit(cursor.peek(1))) {
    cursor.skip(1);
    return {true, true, 0};
  }
  if (sign == '+' || sign == '-') {
    TimeCursor zone = cursor;
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
  for (const ZoneName& zone_name : kZoneNames) {
    if (zone_name.name != word) continue;
    cursor.skip(letters);
    if (zone_name.minutes == kManyMeanings) return {true, false, 0};
    return {true, true, zone_name.minutes * 60 * kSecond};
  }
  return {};
}

std::optional<TimeStamp> stamp_of(TimeCursor& cursor, const DateTime& moment, bool zone_may_follow) {
  if (!cursor.ok() || moment.month < 1 || moment.month > 12 || moment.day < 1 || moment.day > 31) return std::nullopt;
  TimeStamp stamp;
  stamp.kind = moment.kind;
  const std::int64_t days = moment.kind == TimeKind::no_date ? 0 : days_of(moment.year, moment.month, moment.day);
  stamp.ns = days * kDay + moment.in_day;
  if (zone_may_follow) {
    TimeCursor zoned = cursor;
    const bool space = zoned.eat(' ');
    const char c = zoned.peek();
    const TimeZone zone = space && (c == 'Z' || c == 'z') ? TimeZone{} : read_zone_here(zoned);
    if (zone.stands) {
      cursor = zoned;
      stamp.zoned = zone.known;
      stamp.ns -= zone.known ? zone.ns : 0;
    }
  }
  stamp.length = cursor.at();
  return stamp;
}

}  // namespace rose::logs
