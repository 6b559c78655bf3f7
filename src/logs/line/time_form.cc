#include "logs/line/time_form.h"

#include <fmt/format.h>

#include "logs/line/time_parts.h"

namespace rose::logs {
namespace {

constexpr std::string_view kFormLetters = "YymdeHIMSfLpbBaAjzZsT%";

// Parses a time in a given format, one conversion after the other.
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
    for (std::int64_t unit = kSecond / 10; is_digit(cursor_.peek()); cursor_.skip(1), unit /= 10)
      part_ += unit * (cursor_.peek() - '0');
  }

  void half_of_day() {
    const char first = static_cast<char>(cursor_.peek() & ~0x20);
    cursor_.need((first == 'A' || first == 'P') && (cursor_.peek(1) & ~0x20) == 'M');
    half_ = true;
    pm_ = first == 'P';
    cursor_.skip(2);
  }

  void zone() {
    const TimeZone here = read_zone_here(cursor_);
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

  // Combines the parsed parts into a timestamp. Returns nothing if they are no valid time.
  std::optional<TimeStamp> put_together() {
    if (half_) {
      cursor_.need(hour_ >= 1 && hour_ <= 12);
      hour_ = hour_ % 12 + (pm_ ? 12 : 0);
    }
    moment_.in_day = ((hour_ * 60 + minute_) * 60 + second_) * kSecond + part_;
    moment_.kind = !date_ ? TimeKind::no_date : !year_ ? TimeKind::no_year : TimeKind::date_time;
    auto stamp = stamp_of(cursor_, moment_, false);
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

  TimeCursor cursor_;
  DateTime moment_;
  bool year_ = false, date_ = false;  // whether the format contains a year, and a date
  std::int64_t hour_ = 0, minute_ = 0, second_ = 0;
  std::int64_t part_ = 0;  // the fraction of a second, in ns
  bool half_ = false, pm_ = false;
  bool zoned_ = false;
  std::int64_t zone_ns_ = 0;
  std::optional<std::int64_t> epoch_;
};

}  // namespace

std::string time_form_problem(std::string_view form) {
  bool any = false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') continue;
    if (i + 1 == form.size()) return "ends with '%'";
    const char letter = form[++i];
    if (kFormLetters.find(letter) == std::string_view::npos)
      return fmt::format("has '%{}', accepted are %Y %y %m %d %e %b %B %a %A %H %I %M %S %f %L %p %z %Z %s %T and %%",
                         letter);
    any = any || letter == 'H' || letter == 'I' || letter == 's' || letter == 'T';
  }
  return any ? "" : "has no time of day: %H, %I, %T or %s is needed";
}

std::optional<TimeStamp> read_time_as(std::string_view text, std::string_view form) {
  return FormReader(text).read(form);
}

}  // namespace rose::logs
