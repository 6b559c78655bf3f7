// Parses timestamps in the formats that logs use, with or without a year, a date or a time zone. Missing parts are
// marked, and derived later from the whole file (time_keeper.h).
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
  // UTC, ns since 1970. no_year: in the year 1972 (a leap year); no_date: on 1970-01-01; since_boot: since the start.
  std::int64_t ns = 0;
  bool zoned = false;      // the zone is stated, or none is needed (seconds since 1970)
  std::size_t length = 0;  // characters of the text that belong to the timestamp
};

// The timestamp at the beginning of `text`; nothing if there is none. Cheap if there is none.
[[nodiscard]] std::optional<TimeStamp> read_time(std::string_view text);

// "+02:00", "-0530", "UTC", "Z", "CET": ns east of Greenwich. Nothing for names that several zones share.
[[nodiscard]] std::optional<std::int64_t> read_zone(std::string_view text);

[[nodiscard]] std::int64_t days_of(int year, unsigned month, unsigned day);  // days since 1970-01-01
void date_of(std::int64_t days, int& year, unsigned& month, unsigned& day);

}  // namespace rose::logs
