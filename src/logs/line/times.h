// Times as logs write them: any of the usual forms, with or without a year, a date or a time zone. What a form leaves
// out is marked, and filled in later from the whole file (time_keeper.h).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace rose::logs {

inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

enum class TimeKind : std::uint8_t {
  date_time,   // year, month, day, time of day
  no_year,     // "Jun  5 12:00:00"
  no_date,     // "12:00:00.123"
  since_boot,  // seconds since some start: "[   12.345678]"
};

struct TimeStamp {
  TimeKind kind = TimeKind::date_time;
  // UTC ns since 1970; of no_year in the year 1972 (a leap year), of no_date on 1970-01-01, of since_boot since that
  // start.
  std::int64_t ns = 0;
  bool zoned = false;      // it says its zone, or needs none (epoch seconds)
  std::size_t length = 0;  // characters of the text that it takes
};

// The time that stands at the beginning of `text`; nothing when none does. Cheap where none does.
[[nodiscard]] std::optional<TimeStamp> read_time(std::string_view text);

// "+02:00", "-0530", "UTC", "Z", "CET": ns east of Greenwich. Names of zones only where they have one meaning.
[[nodiscard]] std::optional<std::int64_t> read_zone(std::string_view text);

[[nodiscard]] std::int64_t days_of(int year, unsigned month, unsigned day);  // since 1970-01-01
void date_of(std::int64_t days, int& year, unsigned& month, unsigned& day);

}  // namespace rose::logs
