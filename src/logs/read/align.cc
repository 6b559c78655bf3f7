#include "logs/read/align.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/units.h"
#include "logs/line/time_parts.h"
#include "logs/reader.h"

namespace rose::logs {
namespace {

void move_source(Logs& logs, std::size_t i, std::int64_t by) {
  logs.sources[i].first_ns += by;
  logs.sources[i].last_ns += by;
  for (NodeLog& node : logs.nodes)
    for (Message& message : node.messages)
      if (message.source == i && message.ts_ns != kNoTime) message.ts_ns += by;
}

// Moves files that state no zone, because their clocks may have another zone than those of the other files.
// Assumptions: logs of one incident cover about the same time, and zones differ by whole quarters of an hour.
// Goal: that a node stopped early or was started late is no reason to move its log.
// Derivation: a log is moved if its times overlap those of the other files only after the move (one end of the log
// decides how far), or if its first and its last time differ from theirs by the same number of quarters. The
// probability that both differences are by chance within kSlackOfEnds (120 s) of the same number of quarters is about
// (2 * 120 / 900)^2 * 1/112, because there are 112 quarters from -kMostZone to kMostZone.
constexpr std::int64_t kQuarter = 900 * kSecond;
constexpr std::int64_t kMostZone = 14 * 3600 * kSecond;
constexpr std::int64_t kSlack = 60 * kSecond;
constexpr std::int64_t kSlackOfEnds = 120 * kSecond;
constexpr std::int64_t kLeastZone = 2 * kQuarter;  // no two zones differ by less

std::int64_t in_quarters(std::int64_t apart) {
  return (apart >= 0 ? apart + kQuarter / 2 : apart - kQuarter / 2) / kQuarter * kQuarter;
}

// The files of one log, which may have been rotated, and the time that they cover.
struct Covered {
  std::vector<std::size_t> sources;
  std::int64_t first = kNoTime, last = kNoTime;
  bool zoned = false;
  void add(std::int64_t begin, std::int64_t end) {
    first = first == kNoTime ? begin : std::min(first, begin);
    last = last == kNoTime ? end : std::max(last, end);
  }
  [[nodiscard]] bool overlaps(const Covered& other, std::int64_t moved = 0) const {
    return last + moved >= other.first - kSlack && first + moved <= other.last + kSlack;
  }
};

// Returns how far the log has to be moved, in ns; 0 if it stays. `stated`: the other files state their zone, so their
// times are right. Then a log that does not overlap them is moved so that it ends at about the same time.
std::int64_t zone_shift(const Covered& log, const Covered& others, bool stated) {
  const std::int64_t at_end = others.last - log.last, at_begin = others.first - log.first;
  const auto moves = [&](std::int64_t by) {
    return std::abs(by) >= kLeastZone && std::abs(by) <= kMostZone && log.overlaps(others, by);
  };
  const std::int64_t by = in_quarters(at_end);
  if (by == in_quarters(at_begin) && moves(by) && std::abs(at_end - by) <= kSlackOfEnds &&
      std::abs(at_begin - by) <= kSlackOfEnds)
    return by;
  if (log.overlaps(others)) return 0;
  // If a node ended early or started late, only one end of its log coincides with the others.
  const std::int64_t of_begin = in_quarters(at_begin);
  if (std::abs(at_begin - of_begin) <= kSlackOfEnds && std::abs(at_end - by) > kSlackOfEnds && moves(of_begin))
    return of_begin;
  return moves(by) && (stated || std::abs(at_end - by) <= kSlackOfEnds) ? by : 0;
}

}  // namespace

// The logs of one incident cover the same days. A file whose times have no year gets the year in which it ends closest
// to the end of the files that state the year.
void align_years(Logs& logs) {
  std::int64_t last = kNoTime;
  for (const Source& source : logs.sources)
    if (source.last_ns != kNoTime && source.dated) last = std::max(last, source.last_ns);
  if (last == kNoTime) return;
  for (std::size_t i = 0; i < logs.sources.size(); ++i) {
    Source& source = logs.sources[i];
    if (source.last_ns == kNoTime || source.dated || source.time_kind != TimeKind::no_year) continue;
    int year = 0, other_year = 0;
    unsigned month = 0, day = 0, ignored = 0;
    date_of(last / kDay, other_year, ignored, ignored);
    date_of(source.last_ns / kDay, year, month, day);
    std::int64_t best = 0;
    for (const int candidate : {other_year - 1, other_year, other_year + 1}) {
      const std::int64_t by = (days_of(candidate, month, day) - days_of(year, month, day)) * kDay;
      if (std::abs(source.last_ns + by - last) < std::abs(source.last_ns + best - last)) best = by;
    }
    if (best == 0) continue;
    move_source(logs, i, best);
    source.year_of_others = true;
  }
}

void align_zones(Logs& logs) {
  std::map<std::pair<std::string, std::string>, Covered> by_log;
  for (std::size_t i = 0; i < logs.sources.size(); ++i) {
    const Source& source = logs.sources[i];
    if (source.first_ns == kNoTime) continue;
    Covered& log = by_log[{source.node.empty() ? source.host : source.node, source.log}];
    log.sources.push_back(i);
    log.add(source.first_ns, source.last_ns);
    log.zoned = log.zoned || source.zoned;
  }
  // The times of files that state their zone are right. If there are no such files, the times on which most files agree
  // are assumed to be right.
  Covered right;
  for (const auto& [name, log] : by_log)
    if (log.zoned) right.add(log.first, log.last);
  const bool stated = right.first != kNoTime;
  std::set<const Covered*> kept;
  if (!stated) {
    for (const auto& [name, log] : by_log) {
      std::set<const Covered*> same;
      Covered all;
      for (const auto& [other_name, other] : by_log) {
        if (std::abs(other.first - log.first) > kSlackOfEnds && std::abs(other.last - log.last) > kSlackOfEnds)
          continue;
        same.insert(&other);
        all.add(other.first, other.last);
      }
      if (same.size() <= kept.size()) continue;
      kept = std::move(same);
      right = all;
    }
  }
  if (right.first == kNoTime) return;
  for (const auto& [name, log] : by_log) {
    if (log.zoned || kept.contains(&log)) continue;
    const std::int64_t shift = zone_shift(log, right, stated);
    if (shift == 0) continue;
    for (const std::size_t i : log.sources) {
      move_source(logs, i, shift);
      logs.sources[i].shifted_ns = shift;
    }
  }
}

}  // namespace rose::logs
