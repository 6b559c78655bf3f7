// Completes the timestamps of a file: derives a missing year or date from the order of the lines and from the time at
// which the file was written.
#pragma once

#include <cstdint>

#include "logs/line/times.h"

namespace rose::logs {

// Completes the timestamps of one file. A missing year is chosen for the first line without a year. If other lines of
// the file state a year, the year is chosen so that the line is as near as possible to such a line in time (near()).
// Otherwise it is the latest year in which the line is not after `written_ns`, the time at which the file was last
// written. A missing date is chosen so that the last line is not after `written_ns`. From one line to the next, a new
// year (or day) begins where the timestamp is more than half a year (or half a day) before its predecessor.
class TimeKeeper {
 public:
  // `zone_ns`: ns east of Greenwich, for timestamps without a zone.
  TimeKeeper(std::int64_t zone_ns, std::int64_t written_ns) : zone_ns_(zone_ns), written_ns_(written_ns) {}

  // Call this with a time of this file that states its year. Several programs may write into one file, so a file may
  // have times with and without a year.
  void near(std::int64_t ns) { near_ns_ = ns; }

  // The time in UTC, in ns. If the timestamp has no date, or counts from a start (such as that of the machine), the
  // result is relative: after the last line was read, the caller must add offset(kind) to it.
  [[nodiscard]] std::int64_t take(const TimeStamp& stamp);
  [[nodiscard]] std::int64_t offset(TimeKind kind) const;

 private:
  [[nodiscard]] std::int64_t with_year(std::int64_t ns);

  std::int64_t zone_ns_;
  std::int64_t written_ns_;
  std::int64_t near_ns_ = kNoTime;
  int year_ = 0;  // the year that was given to the last timestamp without a year
  std::int64_t last_yearless_ = kNoTime;
  std::int64_t days_ = 0;  // number of days that are added to timestamps without a date
  std::int64_t last_dateless_ = kNoTime;
  std::int64_t last_since_boot_ = kNoTime;
};

}  // namespace rose::logs
