#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

namespace rose {
namespace {

struct Unit {
  std::string_view suffix;
  std::int64_t factor;
};

constexpr std::array<Unit, 4> kDurations{
    {{"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}}};
constexpr std::array<Unit, 4> kSizes{{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}};
constexpr double kMostNs = 10'000.0 * 3'600'000'000'000.0;
constexpr double kMostBytes = 1024.0 * (1 << 30);

// Splits "1.5s" into 1.5 and "s". Accepts only digits and one dot: no sign, exponent, hexadecimal number or infinity.
bool split(std::string_view text, double& number, std::string_view& suffix) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string_view digits = text.substr(0, end);
  suffix = end == std::string_view::npos ? std::string_view{} : text.substr(end);
  if (digits.empty()) return false;
  const auto [ptr, ec] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed);
  return ec == std::errc{} && ptr == digits.data() + digits.size();
}

}  // namespace

Result<std::int64_t> parse_duration_ns(std::string_view text) {
  double number = 0;
  std::string_view suffix;
  if (split(text, number, suffix))
    for (const Unit& unit : kDurations)
      if (unit.suffix == suffix && number * static_cast<double>(unit.factor) <= kMostNs)
        return std::llround(number * static_cast<double>(unit.factor));
  return fail(ErrorKind::input, fmt::format("'{}' is not a duration", text),
              "a duration is a decimal with ms, s, m or h, at most 10000h, such as \"1.5s\"");
}

std::string format_duration(std::int64_t ns) {
  const std::int64_t ms = (ns + 500'000) / 1'000'000;
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (ms % 3'600'000 == 0) return fmt::format("{}h", ms / 3'600'000);
  if (ms % 60'000 == 0) return fmt::format("{}m", ms / 60'000);
  std::string text = fmt::format("{}.{:03}", ms / 1000, ms % 1000);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + "s";
}

Result<std::uint64_t> parse_size(std::string_view text) {
  double number = 0;
  std::string_view suffix;
  if (split(text, number, suffix))
    for (const Unit& unit : kSizes)
      if (unit.suffix == suffix && number * static_cast<double>(unit.factor) <= kMostBytes)
        return static_cast<std::uint64_t>(std::llround(number * static_cast<double>(unit.factor)));
  return fail(ErrorKind::input, fmt::format("'{}' is not a size", text),
              "a size is a decimal with B, KiB, MiB or GiB, at most 1024GiB, such as \"64MiB\"");
}

std::string format_size(std::uint64_t bytes) {
  if (bytes >= (1U << 30)) return fmt::format("{:.3g} GiB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= (1U << 20)) return fmt::format("{:.3g} MiB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= (1U << 10)) return fmt::format("{:.3g} KiB", static_cast<double>(bytes) / (1 << 10));
  return fmt::format("{} B", bytes);
}

std::string wall_clock(std::int64_t ns) {
  std::int64_t rest = ns % 1'000'000'000;
  auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:09} UTC", time.tm_year + 1900, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec, rest);
}

}  // namespace rose
