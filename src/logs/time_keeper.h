// What the times of a file leave out, a year or a date: derived from the order of its lines and from when it was
// written.
#pragma once

#include <cstdint>

#include "logs/line/times.h"

namespace rose::logs {

// Gives the times of one file what they leave out. A missing year is the one that puts the first such line at or before
// `written_ns`, when the file was last written; a missing date, the one that puts the last line there. In between the
// order of lines tells: a time that jumps back by more than half a year or half a day begins the next one.
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
  int year_ = 0;  // of the last time without one
  std::int64_t last_yearless_ = kNoTime;
  std::int64_t days_ = 0;  // added to times without a date
  std::int64_t last_dateless_ = kNoTime;
  std::int64_t last_since_boot_ = kNoTime;
};

}  // namespace rose::logs
