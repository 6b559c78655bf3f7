#include "logs/spans.h"

#include <array>
#include <utility>

#include "base/ascii.h"

namespace rose::logs {
namespace {

struct Unit {
  std::string_view word;
  double ns;
  bool begins = false;  // the unit may be the beginning of a longer word, such as "minutes"
};

constexpr std::array kSpanUnits = std::to_array<Unit>({{"nano", 1, true},
                                                       {"micro", 1e3, true},
                                                       {"milli", 1e6, true},
                                                       {"sec", 1e9, true},
                                                       {"min", 60e9, true},
                                                       {"hour", 3600e9, true},
                                                       {"ns", 1},
                                                       {"us", 1e3},
                                                       {"\u00b5s", 1e3},
                                                       {"\u03bcs", 1e3},
                                                       {"ms", 1e6},
                                                       {"s", 1e9},
                                                       {"m", 60e9},
                                                       {"h", 3600e9}});

const Unit* unit_at(std::string_view low, std::size_t at) {
  const std::string_view rest = low.substr(at);
  for (const Unit& unit : kSpanUnits)
    if (rest.starts_with(unit.word) &&
        (unit.begins || rest.size() == unit.word.size() || !is_alpha(rest[unit.word.size()])))
      return &unit;
  return nullptr;
}

// True if the comma separates groups of three digits, as in "15,727".
bool groups_digits(std::string_view low, std::size_t comma, std::size_t first) {
  if (comma - first > 3) return false;
  std::size_t digits = 0;
  while (comma + 1 + digits < low.size() && is_digit(low[comma + 1 + digits])) ++digits;
  return digits == 3;
}

double decimal_at(std::string_view low, std::size_t& at) {
  double number = 0, place = 1;
  bool point = false;
  std::size_t group = at;
  for (; at < low.size(); ++at) {
    const bool dot = low[at] == '.' && !point && at + 1 < low.size() && is_digit(low[at + 1]);
    const bool comma = low[at] == ',' && !point && groups_digits(low, at, group);
    if (!is_digit(low[at]) && !dot && !comma) break;
    if (dot) point = true;
    else if (comma) group = at + 1;
    else if (point) number += (place /= 10) * (low[at] - '0');
    else number = number * 10 + (low[at] - '0');
  }
  return number;
}

}  // namespace

Span read_span(std::string_view low, std::size_t at) {
  Span span;
  span.number = decimal_at(low, at);
  double number = span.number, larger = 0;
  for (;;) {
    span.end = at;
    if (larger == 0) {
      if (at + 1 < low.size() && low[at] == ']' && low[at + 1] == ' ') ++at;  // as in "[2194] ms"
      while (at < low.size() && low[at] == ' ') ++at;
    }
    const Unit* unit = unit_at(low, at);
    if (unit == nullptr || (larger != 0 && unit->ns >= larger)) return span;
    span.ns += number * unit->ns;
    larger = unit->ns;
    at += unit->word.size();
    while (unit->begins && at < low.size() && is_alpha(low[at])) ++at;
    span.end = at;
    if (at == low.size() || !is_digit(low[at])) return span;
    number = decimal_at(low, at);
  }
}

Span read_clock_span(std::string_view text, std::size_t at) {
  const auto two_digits = [&] {
    if (at + 3 > text.size() || text[at] != ':' || !is_digit(text[at + 1]) || !is_digit(text[at + 2])) return -1.0;
    at += 3;
    return 10.0 * (text[at - 2] - '0') + (text[at - 1] - '0');
  };
  Span span;
  double hours = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) hours = hours * 10 + (text[at] - '0');
  const double minutes = two_digits(), seconds = two_digits();
  if (minutes < 0 || seconds < 0) return span;
  double part = 0, place = 1;
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1]))
    for (++at; at < text.size() && is_digit(text[at]); ++at) part += (place /= 10) * (text[at] - '0');
  span.number = hours;
  span.ns = ((hours * 60 + minutes) * 60 + seconds + part) * 1e9;
  span.end = at;
  return span;
}

}  // namespace rose::logs
