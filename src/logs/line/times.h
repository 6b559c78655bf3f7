// Parses timestamps in the formats that logs use, with or without a year, a date or a time zone. Missing parts are
// marked. They are derived later from the whole file (time_keeper.h).
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
  since_boot,  // seconds since the boot of the system or the start of a program: "[   12.345678]"
};

struct TimeStamp {
  TimeKind kind = TimeKind::date_time;
  // UTC, ns since 1970. For no_year, the year is 1972 (a leap year); for no_date, the date is 1970-01-01; for
  // since_boot, it is the time since the start.
  std::int64_t ns = 0;
  bool zoned = false;      // the text states the zone, or needs none (seconds since 1970)
  std::size_t length = 0;  // characters of the text that belong to the timestamp
};

// The timestamp at the beginning of `text`; nothing if there is none. Rejects most texts after a few characters.
[[nodiscard]] std::optional<TimeStamp> read_time(std::string_view text);

// The offset of a zone such as "+02:00", "-0530", "UTC", "Z" or "CET", in ns east of Greenwich. Returns nothing for a
// name that several zones share.
[[nodiscard]] std::optional<std::int64_t> read_zone(std::string_view text);

[[nodiscard]] std::int64_t days_of(int year, unsigned month, unsigned day);  // days since 1970-01-01
void date_of(std::int64_t days, int& year, unsigned& month, unsigned& day);

}  // namespace rose::logs
