#include "logs/clock_jumps.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "base/units.h"
#include "logs/meaning.h"
#include "logs/reader.h"

namespace rose::logs {
namespace {

constexpr std::int64_t kJumpMinute = 60 * kSecond;
// Smaller steps back are not jumps, because threads may write their lines up to this late.
constexpr std::int64_t kLeastBack = 2 * kSecond;
// Smaller steps forward are not jumps, because ordinary silences are up to this long.
constexpr std::int64_t kLeastForward = 10 * kSecond;
constexpr std::int64_t kEndTogether = 30 * kSecond;  // the logs of one incident end within this time of each other
constexpr std::size_t kMostJumps = 64;               // if a file has more jumps, its timestamps follow no clock
// The least number of messages after a jump. Fewer may be the last messages of a node that is being stopped.
constexpr std::size_t kLeastAfterJump = 4;
constexpr std::size_t kActiveNode = 8;  // a node with fewer messages may have logged only its start
// Weights of jumps: the clock was set and set back; it was only set back; it was set ahead while other nodes logged; it
// was set ahead while the other nodes were silent.
constexpr double kSetAndReset = 1, kSetBack = 0.9, kAheadOfActive = 0.8, kAheadOfSilent = 0.4;

// The messages [begin, end) of a node, all from one file.
struct OneFile {
  std::size_t node = 0, begin = 0, end = 0;
  std::int64_t first = kNoTime, last = kNoTime;
};

// Between two messages the clock was set by at least `lo` and at most `hi` ns. The amount is not exact, because it is
// unknown how much time passed between the messages.
struct ClockStep {
  std::size_t message = 0;  // index of the first message with the changed clock
  std::int64_t lo = 0, hi = 0;
  bool forward = false;
};

// The roundest value in [lo, hi]. People and tools set clocks by round amounts.
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
    ignore_common_jumps();
    for (const Found& entry : found_) undo(entry);
    return jumps();
  }

 private:
  struct Found {
    OneFile file;
    std::size_t from = 0, to = 0;  // the messages [from, to) have the changed clock
    ClockJump jump;
  };

  std::vector<Message>& messages(const OneFile& file) { return logs_.nodes[file.node].messages; }
  std::int64_t time(const OneFile& file, std::size_t i) { return messages(file)[i].ts_ns; }

  // Divides the messages of each node into those of each file. Files with fewer than three timestamps are ignored.
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
        // Times since the start of a program begin again at zero at each start, so they do not show that a clock was
        // set.
        const Source& source = logs_.sources[all[begin].source];
        if (file.first != kNoTime && source.timed >= 3 && source.time_kind != TimeKind::since_boot)
          files_.push_back(file);
      }
    }
  }

  // Finds the jumps in one file: first pairs of steps in opposite directions, then single steps.
  void look(const OneFile& file) {
    std::size_t begin = file.begin;
    while (begin < file.end && time(file, begin) == kNoTime) ++begin;
    // The longest ordinary gap in the log. A jump may include up to this much time that really passed.
    std::int64_t quiet = kSecond;
    std::vector<ClockStep> steps;
    for (std::size_t i = begin + 1; i < file.end; ++i) {
      const std::int64_t change = time(file, i) - time(file, i - 1);
      if (change >= kLeastForward) {
        steps.push_back({i, change, change, true});
      } else if (change >= 0) {
        quiet = std::max(quiet, change);
      } else if (change <= -kLeastBack && is_followed_by_early(file, i)) {
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
        // If the clock was set and set back, there are two steps by the same amount in opposite directions. A mere gap
        // has no such counterpart.
        const std::int64_t lo = std::max(steps[a].lo, steps[b].lo), hi = std::min(steps[a].hi, steps[b].hi);
        if (lo > hi) continue;
        used[a] = used[b] = true;
        add_set_and_reset(file, steps[a], steps[b], roundest(lo, hi));
      }
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (used[i]) continue;
      if (!steps[i].forward) add(file, steps[i], file.end, -roundest(steps[i].lo, steps[i].hi), kSetBack);
      else if (const double weight = ahead_of_others(file, steps[i]); weight > 0)
        add(file, steps[i], file.end, roundest(least_change(steps[i]), steps[i].hi), weight);
    }
  }

  // True if the message after `i` has an early time, too. A single line that was written late would be followed by
  // lines with current times.
  bool is_followed_by_early(const OneFile& file, std::size_t i) {
    return i + 1 < file.end && time(file, i + 1) < time(file, i - 1) - kLeastBack / 2;
  }

  // The weight of a jump ahead. A log with an hour of silence looks like a log whose clock was set ahead by an hour,
  // but the other logs tell the two apart. Only a log whose clock was set continues after the end of all other logs,
  // and would end together with them if the jump were removed.
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
    // The message after the jump must be later than the end of all other logs by at least half of the jump. Otherwise,
    // the node may only have been the last one to be stopped.
    if (last == kNoTime || time(file, step.message) - last < step.hi / 2 || before > last + kEndTogether ||
        std::abs(last - end) > kEndTogether || is_stop(file, step.message))
      return 0;
    if (meanwhile >= 2) return kAheadOfActive;
    // A node may log one or two messages when it is stopped, however long it was silent before.
    if (file.end - step.message < kLeastAfterJump) return 0;
    const std::int64_t later = time(file, step.message) - last;
    return std::any_of(files_.begin(), files_.end(),
                       [&](const OneFile& other) { return other.node != file.node && would_have_logged(other, later); })
               ? kAheadOfSilent
               : 0;
  }

  // True if the message reports an orderly stop. A node that had nothing to do is silent until it is stopped, and then
  // reports its stop in any number of messages. None of them shows that its clock was changed before.
  bool is_stop(const OneFile& file, std::size_t i) { return read_meaning(logs_.text(messages(file)[i])).stopping; }

  // True if the node would have logged something if it had run for `longer` ns more. A log with few messages, or with
  // gaps of that length, may end at any time.
  bool would_have_logged(const OneFile& file, std::int64_t longer) {
    std::int64_t before = kNoTime, quiet = 0;
    std::size_t talking = 0;
    for (std::size_t i = file.begin; i < file.end; ++i) {
      const std::int64_t ts = time(file, i);
      if (ts == kNoTime) continue;
      if (before != kNoTime) quiet = std::max(quiet, ts - before);
      before = ts;
      ++talking;
    }
    return talking >= kActiveNode && quiet < longer;
  }

  // The smallest likely change. The log may have been silent before the jump for longer than its usual gaps. The change
  // follows from the assumption that all logs end together, which is exact only to kEndTogether.
  static std::int64_t least_change(const ClockStep& step) {
    return std::min(step.lo, step.hi - std::min(kEndTogether, step.hi / 10));
  }

  void add_set_and_reset(const OneFile& file, const ClockStep& there, const ClockStep& back, std::int64_t change) {
    Found& entry = add(file, there, back.message, there.forward ? change : -change, kSetAndReset);
    entry.jump.until_ns = std::max(entry.jump.at_ns + kSecond / 10, time(file, back.message));
    entry.jump.words += fmt::format(", and {} {} later", there.forward ? "back" : "forward",
                                    format_duration(entry.jump.until_ns - entry.jump.at_ns));
  }

  // Records that in the messages from `step` up to `to` the clock was wrong by `change`.
  Found& add(const OneFile& file, const ClockStep& step, std::size_t to, std::int64_t change, double weight) {
    const Message& message = messages(file)[step.message];
    Found& entry = found_.emplace_back();
    entry.file = file;
    entry.from = step.message;
    entry.to = to;
    // The clock was probably set just before the first message after the jump, and not just after the last message
    // before it.
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

  static bool same_jump(const Found& a, const Found& b) {
    return std::abs(a.jump.change_ns - b.jump.change_ns) <= 2 * kSecond &&
           std::abs(a.jump.at_ns - b.jump.at_ns) <= kJumpMinute;
  }

  // Ignores jumps that all logs share, such as the end of summer time or a change of the time zone, because they are no
  // fault.
  void ignore_common_jumps() {
    std::vector<bool> common(found_.size(), false);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const auto jumps = [&](const OneFile& file) {
        return std::any_of(found_.begin(), found_.end(), [&](const Found& entry) {
          return entry.file.node == file.node && same_jump(entry, found_[i]);
        });
      };
      const auto another = [&](const OneFile& file) { return file.node != found_[i].file.node; };
      common[i] =
          std::any_of(files_.begin(), files_.end(), another) &&
          std::all_of(files_.begin(), files_.end(), [&](const OneFile& file) { return !another(file) || jumps(file); });
    }
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (common[i]) found_[i].jump.weight = 0;  // the jump is still removed from the timestamps
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

  // The jumps to report. If several files of a node contain the same jump, it is reported once.
  std::vector<ClockJump> jumps() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Found& a, const Found& b) { return a.jump.at_ns < b.jump.at_ns; });
    std::vector<ClockJump> jumps;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i].jump.weight == 0) continue;
      const bool known =
          std::any_of(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(i), [&](const Found& entry) {
            return entry.file.node == found_[i].file.node && entry.jump.weight > 0 && same_jump(entry, found_[i]);
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
