#include "logs/clock_jumps.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "base/units.h"
#include "logs/reader.h"

namespace rose::logs {
namespace {

constexpr std::int64_t kJumpMinute = 60 * kSecond;
constexpr std::int64_t kLeastBack = 2 * kSecond;      // threads that write their lines late are not that late
constexpr std::int64_t kLeastForward = 10 * kSecond;  // less is a quiet moment
constexpr std::int64_t kEndTogether = 30 * kSecond;   // logs of one incident end within this of each other
constexpr std::size_t kMostJumps = 64;                // of one file: one that jumps more often is no record of a clock
constexpr std::size_t kMoreThanFarewell = 4;          // messages
constexpr std::size_t kTalks = 8;                     // messages of a node that writes more than its start
constexpr double kThereAndBack = 1, kOneWay = 0.9, kAmidOthers = 0.8, kAloneLater = 0.4;

// Messages [begin, end) of a node, all of one file.
struct OneFile {
  std::size_t node = 0, begin = 0, end = 0;
  std::int64_t first = kNoTime, last = kNoTime;
};

// Between two messages the clock was set by at least `lo` and at most `hi`: what else passed is not known.
struct ClockStep {
  std::size_t message = 0;  // the first with the changed clock
  std::int64_t lo = 0, hi = 0;
  bool forward = false;
};

// People and tools set clocks by round times.
std::int64_t roundest(std::int64_t lo, std::int64_t hi) {
  constexpr std::array kUnits = {24 * 60 * kJumpMinute, 60 * kJumpMinute, 30 * kJumpMinute, 10 * kJumpMinute,
                                 5 * kJumpMinute,       kJumpMinute,      30 * kSecond,     10 * kSecond,
                                 5 * kSecond,           kSecond,          kSecond / 10};
  for (const std::int64_t unit : kUnits)
    if (hi / unit * unit >= lo && hi >= unit) return hi / unit * unit;
  return lo;
}

class JumpFinder {
 public:
  explicit JumpFinder(Logs& logs) : logs_(logs) {}

  std::vector<ClockJump> run() {
    split();
    for (const OneFile& file : files_) look(file);
    drop_common();
    for (const Found& entry : found_) undo(entry);
    return jumps();
  }

 private:
  struct Found {
    OneFile file;
    std::size_t from = 0, to = 0;  // messages [from, to) have the changed clock
    ClockJump jump;
  };

  std::vector<Message>& messages(const OneFile& file) { return logs_.nodes[file.node].messages; }
  std::int64_t time(const OneFile& file, std::size_t i) { return messages(file)[i].ts_ns; }

  void split() {
    for (std::size_t n = 0; n < logs_.nodes.size(); ++n) {
      const std::vector<Message>& all = logs_.nodes[n].messages;
      for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
        OneFile file{n, begin, begin, kNoTime, kNoTime};
        for (end = begin; end < all.size() && all[end].source == all[begin].source; ++end) {
          if (all[end].ts_ns == kNoTime) continue;
          file.first = file.first == kNoTime ? all[end].ts_ns : std::min(file.first, all[end].ts_ns);
          file.last = std::max(file.last, all[end].ts_ns);
        }
        file.end = end;
        // Times since a start begin again with each start.
        const Source& source = logs_.sources[all[begin].source];
        if (file.first != kNoTime && source.timed >= 3 && source.time_kind != TimeKind::since_boot)
          files_.push_back(file);
      }
    }
  }

  void look(const OneFile& file) {
    std::size_t begin = file.begin;
    while (begin < file.end && time(file, begin) == kNoTime) ++begin;
    // How long it is quiet anyway: so much of a jump may be time that passed.
    std::int64_t quiet = kSecond;
    std::vector<ClockStep> steps;
    for (std::size_t i = begin + 1; i < file.end; ++i) {
      const std::int64_t change = time(file, i) - time(file, i - 1);
      if (change >= kLeastForward) {
        steps.push_back({i, change, change, true});
      } else if (change >= 0) {
        quiet = std::max(quiet, change);
      } else if (change <= -kLeastBack && stays_back(file, i)) {
        steps.push_back({i, -change, -change, false});
      }
      if (steps.size() > kMostJumps) return;
    }
    for (ClockStep& step : steps) {
      const std::int64_t passed = std::min(quiet, step.hi / 10);
      if (step.forward) step.lo -= passed;
      else step.hi += passed;
    }
    std::vector<bool> used(steps.size(), false);
    for (std::size_t a = 0; a < steps.size(); ++a) {
      for (std::size_t b = a + 1; b < steps.size() && !used[a]; ++b) {
        if (used[b] || steps[a].forward == steps[b].forward) continue;
        // A quiet moment is no step: one of the two must be.
        const std::int64_t lo = std::max(steps[a].lo, steps[b].lo), hi = std::min(steps[a].hi, steps[b].hi);
        if (lo > hi) continue;
        used[a] = used[b] = true;
        there_and_back(file, steps[a], steps[b], roundest(lo, hi));
      }
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (used[i]) continue;
      if (!steps[i].forward) add(file, steps[i], file.end, -roundest(steps[i].lo, steps[i].hi), kOneWay);
      else if (const double weight = ahead_of_others(file, steps[i]); weight > 0)
        add(file, steps[i], file.end, roundest(beside_others(steps[i]), steps[i].hi), weight);
    }
  }

  // One line that comes late is followed by those of its time.
  bool stays_back(const OneFile& file, std::size_t i) {
    return i + 1 < file.end && time(file, i + 1) < time(file, i - 1) - kLeastBack / 2;
  }

  // A log that is silent for an hour looks like one whose clock jumps by an hour, by itself. Beside others it does not:
  // only one that jumped goes on after the end of them all, and would have ended with them.
  double ahead_of_others(const OneFile& file, const ClockStep& step) {
    std::int64_t last = kNoTime;
    std::uint64_t meanwhile = 0;
    const std::int64_t before = time(file, step.message - 1), end = file.last - step.hi;
    for (const OneFile& other : files_) {
      if (other.node == file.node) continue;
      last = last == kNoTime ? other.last : std::max(last, other.last);
      for (std::size_t i = other.begin; i < other.end; ++i)
        if (const std::int64_t ts = time(other, i); ts != kNoTime && ts > before && ts <= end + kEndTogether)
          ++meanwhile;
    }
    // If the margin is smaller, it is the node that was stopped last.
    if (last == kNoTime || time(file, step.message) - last < step.hi / 2 || before > last + kEndTogether ||
        std::abs(last - end) > kEndTogether)
      return 0;
    if (meanwhile >= 2) return kAmidOthers;
    // A last word or two come when all are stopped, however long it was quiet.
    if (file.end - step.message < kMoreThanFarewell) return 0;
    const std::int64_t later = time(file, step.message) - last;
    return std::any_of(files_.begin(), files_.end(),
                       [&](const OneFile& other) { return other.node != file.node && would_have_spoken(other, later); })
               ? kAloneLater
               : 0;
  }

  // Whether the node would have written something if it had continued for so long. The log of a node that writes
  // little, or that pauses for as long anyway, may end at any time.
  bool would_have_spoken(const OneFile& file, std::int64_t longer) {
    std::int64_t before = kNoTime, quiet = 0;
    std::size_t talking = 0;
    for (std::size_t i = file.begin; i < file.end; ++i) {
      const std::int64_t ts = time(file, i);
      if (ts == kNoTime) continue;
      if (before != kNoTime) quiet = std::max(quiet, ts - before);
      before = ts;
      ++talking;
    }
    return talking >= kTalks && quiet < longer;
  }

  // The least that it can be: how long the log was quiet meanwhile, its own quiet moments need not show; that it ends
  // with the others, which it does within this, leaves so much open.
  static std::int64_t beside_others(const ClockStep& step) {
    return std::min(step.lo, step.hi - std::min(kEndTogether, step.hi / 10));
  }

  void there_and_back(const OneFile& file, const ClockStep& there, const ClockStep& back, std::int64_t change) {
    Found& entry = add(file, there, back.message, there.forward ? change : -change, kThereAndBack);
    entry.jump.until_ns = std::max(entry.jump.at_ns + kSecond / 10, time(file, back.message));
    entry.jump.words += fmt::format(", and {} {} later", there.forward ? "back" : "forward",
                                    format_duration(entry.jump.until_ns - entry.jump.at_ns));
  }

  Found& add(const OneFile& file, const ClockStep& step, std::size_t to, std::int64_t change, double weight) {
    const Message& message = messages(file)[step.message];
    Found& entry = found_.emplace_back();
    entry.file = file;
    entry.from = step.message;
    entry.to = to;
    // The first message after the jump is more likely its consequence than the last message before it.
    entry.jump = {
        file.node,
        std::max(time(file, step.message - 1), time(file, step.message) - change),
        kNoTime,
        change,
        weight,
        fmt::format("{}:{} of {}: its times jump {} by {}", logs_.sources[message.source].path.filename().string(),
                    message.line, logs_.nodes[file.node].name, change < 0 ? "back" : "forward",
                    format_duration(std::abs(change)))};
    return entry;
  }

  static bool alike(const Found& a, const Found& b) {
    return std::abs(a.jump.change_ns - b.jump.change_ns) <= 2 * kSecond &&
           std::abs(a.jump.at_ns - b.jump.at_ns) <= kJumpMinute;
  }

  // Clocks that all jump alike are one that all write by: summer time ends, or the zone is another one.
  void drop_common() {
    std::vector<bool> common(found_.size(), false);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const auto jumps = [&](const OneFile& file) {
        return std::any_of(found_.begin(), found_.end(),
                           [&](const Found& entry) { return entry.file.node == file.node && alike(entry, found_[i]); });
      };
      const auto another = [&](const OneFile& file) { return file.node != found_[i].file.node; };
      common[i] =
          std::any_of(files_.begin(), files_.end(), another) &&
          std::all_of(files_.begin(), files_.end(), [&](const OneFile& file) { return !another(file) || jumps(file); });
    }
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (common[i]) found_[i].jump.weight = 0;  // taken out of the times all the same
  }

  void undo(const Found& entry) {
    Source& source = logs_.sources[messages(entry.file)[entry.from].source];
    for (std::size_t i = entry.from; i < entry.to; ++i) messages(entry.file)[i].ts_ns -= entry.jump.change_ns;
    source.first_ns = source.last_ns = kNoTime;
    for (std::size_t i = entry.file.begin; i < entry.file.end; ++i) {
      const std::int64_t ts = time(entry.file, i);
      if (ts == kNoTime) continue;
      source.first_ns = source.first_ns == kNoTime ? ts : std::min(source.first_ns, ts);
      source.last_ns = std::max(source.last_ns, ts);
    }
  }

  // A jump that several files of a node show is reported once: from the first file.
  std::vector<ClockJump> jumps() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Found& a, const Found& b) { return a.jump.at_ns < b.jump.at_ns; });
    std::vector<ClockJump> jumps;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i].jump.weight == 0) continue;
      const bool known =
          std::any_of(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(i), [&](const Found& entry) {
            return entry.file.node == found_[i].file.node && entry.jump.weight > 0 && alike(entry, found_[i]);
          });
      if (!known) jumps.push_back(std::move(found_[i].jump));
    }
    return jumps;
  }

  Logs& logs_;
  std::vector<OneFile> files_;
  std::vector<Found> found_;
};

}  // namespace

std::vector<ClockJump> undo_clock_jumps(Logs& logs) { return JumpFinder(logs).run(); }

}  // namespace rose::logs
