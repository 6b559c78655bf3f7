#include "logs/time_keeper.h"

#include <algorithm>
#include <cstdlib>

#include "logs/line/time_parts.h"

namespace rose::logs {

// Replaces the placeholder year by the right one. Month and day of the month stay the same, so the number of days since
// 1970 is computed anew.
std::int64_t TimeKeeper::with_year(std::int64_t ns) {
  std::int64_t day_number = ns / kDay;
  if (ns % kDay < 0) --day_number;
  int year = 0;
  unsigned month = 0, day = 0;
  date_of(day_number, year, month, day);
  // The first and last hours of the placeholder year may be in another year after the conversion to UTC.
  const int moved = year - kPlaceholderYear;
  const auto in_year = [&](int wanted) {
    return days_of(wanted + moved, month, day) * kDay + (ns - day_number * kDay);
  };
  if (year_ == 0) {
    int now = 0;
    unsigned ignored = 0;
    date_of((near_ns_ != kNoTime ? near_ns_ : written_ns_) / kDay, now, ignored, ignored);
    // Allow one more day, because the clock or the zone of the writer may be ahead.
    year_ = near_ns_ == kNoTime && in_year(now) > written_ns_ + kDay ? now - 1 : now;
    for (const int other : {now - 1, now + 1})
      if (near_ns_ != kNoTime && std::abs(in_year(other) - near_ns_) < std::abs(in_year(year_) - near_ns_))
        year_ = other;
  } else if (last_yearless_ != kNoTime && in_year(year_) < last_yearless_ - 182 * kDay) {
    ++year_;
  } else if (last_yearless_ != kNoTime && in_year(year_) > last_yearless_ + 182 * kDay) {
    return in_year(year_ - 1);  // the line is late and belongs to the previous year
  }
  last_yearless_ = in_year(year_);
  return last_yearless_;
}

std::int64_t TimeKeeper::take(const TimeStamp& stamp) {
  const std::int64_t ns = stamp.ns - (stamp.zoned ? 0 : zone_ns_);
  switch (stamp.kind) {
    case TimeKind::date_time: return ns;
    case TimeKind::no_year: return with_year(ns);
    case TimeKind::no_date: {
      std::int64_t in_days = ns + days_ * kDay;
      if (last_dateless_ != kNoTime && in_days < last_dateless_ - kDay / 2) {
        ++days_;
        in_days += kDay;
      } else if (last_dateless_ != kNoTime && in_days > last_dateless_ + kDay / 2 && days_ > 0) {
        return in_days - kDay;  // the line is late and belongs to the previous day
      }
      last_dateless_ = in_days;
      return in_days;
    }
    case TimeKind::since_boot: last_since_boot_ = std::max(last_since_boot_, stamp.ns); return stamp.ns;
  }
  return kNoTime;
}

std::int64_t TimeKeeper::offset(TimeKind kind) const {
  if (kind == TimeKind::since_boot) return last_since_boot_ == kNoTime ? 0 : written_ns_ - last_since_boot_;
  if (kind != TimeKind::no_date || last_dateless_ == kNoTime) return 0;
  // Add as many days as possible without moving the last line beyond the time at which the file was written. Allow one
  // more hour, because the clocks may differ.
  std::int64_t days = (written_ns_ + 3600 * kSecond - last_dateless_) / kDay;
  if ((written_ns_ + 3600 * kSecond - last_dateless_) % kDay < 0) --days;
  return days * kDay;
}

}  // namespace rose::logs
