// Times as logs write them: any of the usual forms, with or without a year, a date or a time zone. What a form leaves out is
// said, and filled in by who sees the whole file (TimeKeeper).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

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
  // UTC ns since 1970; of no_year in the year 1972 (a leap year), of no_date on 1970-01-01, of since_boot since that start.
  std::int64_t ns = 0;
  bool zoned = false;      // it says its zone, or needs none (epoch seconds)
  std::size_t length = 0;  // characters of the text that it takes
};

// The time that stands at the beginning of `text`; nothing when none does. Cheap where none does.
[[nodiscard]] std::optional<TimeStamp> read_time(std::string_view text);

// "%d.%m.%Y %H:%M:%S.%f": strftime's letters, and %f for a fraction of a second, %L for milliseconds, %s for seconds since
// 1970; what is wrong with the form, or "".
[[nodiscard]] std::string time_form_problem(std::string_view form);
[[nodiscard]] std::optional<TimeStamp> read_time_as(std::string_view text, std::string_view form);

// "+02:00", "-0530", "UTC", "Z", "CET": ns east of Greenwich. Names of zones only where they have one meaning.
[[nodiscard]] std::optional<std::int64_t> read_zone(std::string_view text);

[[nodiscard]] std::int64_t days_of(int year, unsigned month, unsigned day);  // since 1970-01-01
void date_of(std::int64_t days, int& year, unsigned& month, unsigned& day);

// Gives the times of one file what they leave out. A missing year is the one that puts the first such line at or before
// `written_ns`, when the file was last written; a missing date, the one that puts the last line there. In between the order of
// lines tells: a time that jumps back by more than half a year or half a day begins the next one.
class TimeKeeper {
 public:
  // Times without a zone are `zone_ns` east of Greenwich.
  TimeKeeper(std::int64_t zone_ns, std::int64_t written_ns) : zone_ns_(zone_ns), written_ns_(written_ns) {}

  // UTC ns; of a time without a date, and since a start, `offset` is to be added once the last line was read.
  [[nodiscard]] std::int64_t take(const TimeStamp& stamp);
  [[nodiscard]] std::int64_t offset(TimeKind kind) const;

 private:
  [[nodiscard]] std::int64_t in_its_year(std::int64_t ns);

  std::int64_t zone_ns_;
  std::int64_t written_ns_;
  int year_ = 0;                 // of the last time without one
  std::int64_t last_yearless_ = kNoTime;
  std::int64_t days_ = 0;        // added to times without a date
  std::int64_t last_dateless_ = kNoTime;
  std::int64_t last_since_boot_ = kNoTime;
};

}  // namespace rose::logs
