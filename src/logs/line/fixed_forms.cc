#include "logs/line/fixed_forms.h"

#include <algorithm>

#include "base/ascii.h"
#include "logs/line/chars.h"
#include "logs/line/time_parts.h"

namespace rose::logs {

bool read_klog(std::string_view line, Parts& parts) {
  if (line.size() < 20 || line[0] < 'A' || line[0] > 'Z') return false;
  constexpr std::string_view kLetters = "DIWEF";
  if (kLetters.find(line[0]) == std::string_view::npos) return false;
  std::size_t digits = 0;
  while (digits < 9 && is_digit(line[1 + digits])) ++digits;
  if ((digits != 4 && digits != 6 && digits != 8) || line[1 + digits] != ' ') return false;
  // Four digits are month and day; six or eight also include the year.
  const auto two = [&](std::size_t at) { return (line[at] - '0') * 10 + (line[at + 1] - '0'); };
  std::string_view rest = line.substr(2 + digits);
  const auto clock = read_time(rest);
  if (!clock || clock->kind != TimeKind::no_date) return false;
  const int year = digits == 4 ? 1972 : digits == 6 ? 2000 + two(1) : two(1) * 100 + two(3);
  const auto month = static_cast<unsigned>(two(digits - 3));
  const auto day = static_cast<unsigned>(two(digits - 1));
  if (month < 1 || month > 12 || day < 1 || day > 31 || year < 1970) return false;
  TimeStamp time;
  time.kind = digits == 4 ? TimeKind::no_year : TimeKind::date_time;
  time.ns = days_of(year, month, day) * 86'400'000'000'000 + clock->ns;
  parts.time = time;
  parts.level = level_of(line.substr(0, 1));
  rest.remove_prefix(clock->length);
  while (!rest.empty() && blank_char(rest.front())) rest.remove_prefix(1);
  rest.remove_prefix(std::min(rest.find(' '), rest.size()));  // skip the number of the thread
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const std::size_t end = std::min(rest.find_first_of(" ]"), rest.size());
  std::string_view place = rest.substr(0, end);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) {
    parts.text = rest;
    return true;
  }
  place = place.substr(0, colon);
  if (const std::size_t at = place.find('@'); at != std::string_view::npos) place.remove_prefix(at + 1);
  parts.logger = place;
  rest.remove_prefix(std::min(end + 1, rest.size()));
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == ']')) rest.remove_prefix(1);
  parts.text = rest;
  return true;
}

bool read_access(std::string_view line, Parts& parts) {
  const std::size_t open = line.find(" [");
  if (open == std::string_view::npos || open > 200) return false;
  const auto time = read_time(line.substr(open + 2));
  if (!time || time->kind != TimeKind::date_time || open + 2 + time->length >= line.size() ||
      line[open + 2 + time->length] != ']')
    return false;
  if (std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(open), ' ') < 2) return false;
  const std::string_view rest = line.substr(open + 3 + time->length);
  if (!rest.starts_with(" \"")) return false;
  parts.time = time;
  parts.text = rest.substr(1);
  const std::size_t close = parts.text.find("\" ", 1);
  if (close != std::string_view::npos && close + 2 < parts.text.size())
    parts.level = parts.text[close + 2] == '5' ? Level::error : Level::info;
  return true;
}

}  // namespace rose::logs
