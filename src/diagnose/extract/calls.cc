#include "diagnose/extract/calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/path.h"
#include "base/units.h"
#include "diagnose/extract/call_faults.h"
#include "evidence/failed_calls.h"
#include "evidence/surprise.h"
#include "kernel/syscalls.h"
#include "profile/profile.h"
#include "weights/weights.h"

namespace rose::diagnose {
namespace {

// Recognises lookups that fail all the time, such as those of class files, modules and message catalogues: fault-free
// runs also look up many different names with the same extension in vain.
class Lookups {
 public:
  explicit Lookups(const profile::Profile& profile) {
    for (const profile::CallKind& kind : profile.failures)
      if (const std::string_view extension = extension_of(kind.path); !extension.empty())
        kinds_[{kind.syscall, kind.error, extension}] += kind.path.starts_with("*/") ? profile::kManyFolders : 1;
  }
  [[nodiscard]] bool often(std::string_view syscall, std::string_view error, std::string_view path) const {
    const auto known = kinds_.find({syscall, error, extension_of(path)});
    return known != kinds_.end() && known->second >= profile::kManyLookups;
  }

 private:
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::size_t> kinds_;
};

// Recognises failures that are consequences of a restart in the dump: they come after the first restart in the dump,
// they also occur after restarts in the test deployment, and the dump does not contain far more of them per restart
// than the test deployment produces.
class AfterRestarts {
 public:
  AfterRestarts(const Given& given, const Facts& facts) {
    if (given.restarts == nullptr || given.restarts->nodes.empty()) return;
    for (const ProcessEvent& p : facts.processes) {
      if ((p.main_known && !p.main) || p.event->state == ProcessState::paused) continue;
      if (facts.back_after(p.node, p.event->ts_ns) == kNever) continue;
      first_ = std::min(first_, p.event->ts_ns);
      ++seen_;
    }
    if (seen_ == 0) return;
    known_.emplace(*given.restarts);
    for (const auto& [node, times] : given.restarts->nodes) learnt_ += times;
  }
  [[nodiscard]] bool explain(const FailedCall& group) const {
    if (!known_ || learnt_ == 0 || group.first_ts < first_) return false;
    const profile::CallKind* kind = known_->find(*group.source, *group.first);
    if (kind == nullptr) return false;
    const double each = static_cast<double>(kind->count) / learnt_;
    return static_cast<double>(group.count) <= 10 * std::max(1.0, each) * static_cast<double>(seen_) + 20;
  }

 private:
  std::int64_t first_ = kNever;
  std::uint64_t seen_ = 0;  // number of restarts in the dump
  int learnt_ = 0;          // number of restarts in the test deployment
  std::optional<profile::BenignIndex> known_;
};

// The groups that are not benign. Such a group is not in the profile, or is far rarer there, and in either case no
// restart explains it.
std::vector<Failure> unusual(const Given& given, const Facts& facts, const std::vector<FailedCall>& groups,
                             Discards& discards) {
  const Times& times = facts.times;
  const AfterRestarts after_restarts(given, facts);
  const std::optional<profile::Profile>& profile = given.inputs.profile;
  std::optional<profile::BenignIndex> normal_failures;
  std::optional<Lookups> lookups;
  if (profile) {
    normal_failures.emplace(*profile);
    lookups.emplace(*profile);
  }
  std::vector<Failure> failures;
  for (const FailedCall& group : groups) {
    Failure failure;
    failure.group = &group;
    failure.syscall = kernel::syscall_name(group.syscall);
    if (const profile::CallKind* kind = normal_failures ? normal_failures->find(*group.source, *group.first) : nullptr;
        kind != nullptr) {
      failure.normal = static_cast<double>(kind->count) / std::max(1, profile->runs);
      failure.far_more =
          static_cast<double>(group.count) > 10 * failure.normal * times.longer_than_a_run(*profile) + 20;
      if (!failure.far_more) {
        discards.add("benign: the profile contains the same failures without faults", group.count);
        continue;
      }
    }
    if (after_restarts.explain(group)) {
      discards.add("consequences of a restart: runs with a planned restart contain the same failures", group.count);
      continue;
    }
    failure.ordinariness =
        ordinariness(group.err, failure.syscall, group.source->str(group.first->path), group.first->peer != 0);
    // Programs try to open system files that they are not allowed to read, but do not report this. A reported EACCES is
    // therefore serious.
    if (group.err == EACCES && group.first->how().known == Known::stated) failure.ordinariness = 0;
    if (failure.ordinariness == 2 && lookups &&
        lookups->often(failure.syscall, kernel::errno_name(group.err), group.source->str(group.first->path)))
      failure.ordinariness = 3;
    // A short transfer of a regular file is serious: it happens only if the file system cannot transfer more.
    if (group.err == 0) failure.ordinariness = 0;
    if (group.searched) failure.ordinariness = 3;
    failures.push_back(std::move(failure));
  }
  return failures;
}

using Moments = std::vector<std::pair<std::int64_t, const Failure*>>;  // by time

// By node: the failures with a serious error, ordered by time.
std::vector<Moments> serious_failures(const std::vector<Failure>& failures, int nodes) {
  std::vector<Moments> serious(static_cast<std::size_t>(nodes));
  for (const Failure& failure : failures)
    if (failure.ordinariness <= 1)
      for (const std::int64_t ts : failure.group->times)
        serious[static_cast<std::size_t>(failure.group->node)].emplace_back(ts, &failure);
  for (Moments& of : serious)
    std::sort(of.begin(), of.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return serious;
}

// True if each of these failures came right after a start of the node, and they came after more than one start.
bool follows_starts(const FailedCall& group, const std::vector<std::int64_t>& starts) {
  std::set<std::int64_t> after;
  return std::all_of(group.times.begin(), group.times.end(),
                     [&](std::int64_t ts) {
                       const auto it = std::upper_bound(starts.begin(), starts.end(), ts);
                       if (it == starts.begin() || ts - *std::prev(it) > kAfterStart) return false;
                       after.insert(*std::prev(it));
                       return true;
                     }) &&
         after.size() > 1;
}

// The serious failure that the last call of the group followed; nullptr unless every call of the group followed such a
// failure within kAfterError.
const Failure* followed(const FailedCall& group, const Moments& serious) {
  const Failure* last = nullptr;
  const bool always = std::all_of(group.times.begin(), group.times.end(), [&](std::int64_t ts) {
    const auto it =
        std::upper_bound(serious.begin(), serious.end(), ts, [](std::int64_t t, const auto& w) { return t < w.first; });
    if (it == serious.begin() || ts - std::prev(it)->first > kAfterError) return false;
    last = std::prev(it)->second;
    return true;
  });
  return always ? last : nullptr;
}

// The event that precedes every occurrence of the failure, and therefore probably causes it: a start of its node, or a
// more serious failure; "" if there is none.
std::string what_it_follows(const Failure& failure, const Given& given, const Facts& facts,
                            const std::vector<Moments>& serious) {
  const FailedCall& group = *failure.group;
  if (failure.ordinariness == 0 || group.times.size() < group.count || group.cause != nullptr)
    return "";  // if `times` is shorter than `count`, the timestamps of some calls were not kept
  const auto node = static_cast<std::size_t>(group.node);
  if (follows_starts(group, facts.starts[node])) return fmt::format("a start of {}", given.name(group.node));
  if (failure.ordinariness < 2) return "";
  const Failure* last = followed(group, serious[node]);
  return last == nullptr ? "" : fmt::format("{} {}", last->syscall, how_failed(*last->group));
}

// A program that writes the rest of its data after a short write does so at once. If more time passed, the program took
// the short write for a complete one, and the failed call belongs to other data.
constexpr std::int64_t kWritesRest = 5 * kMillisecond;

// Finds writes that failed for lack of space right after a short write to the same file: the last page that was free
// took the beginning of the data. The two are one event.
void find_torn(std::vector<Failure>& failures) {
  for (Failure& failure : failures) {
    const FailedCall& rest = *failure.group;
    if (!lasting_error(rest.err) || failure.syscall.find("write") == std::string::npos) continue;
    for (const Failure& other : failures) {
      const FailedCall& part = *other.group;
      if (part.err != 0 || part.done <= 0 || part.done >= std::int64_t{part.requested} || part.node != rest.node ||
          other.syscall != failure.syscall || part.pattern != rest.pattern)
        continue;
      if (std::any_of(part.times.begin(), part.times.end(),
                      [&](std::int64_t ts) { return ts <= rest.first_ts && rest.first_ts - ts <= kWritesRest; }))
        failure.torn = part.done;
    }
  }
}

}  // namespace

ExtractedCalls extract_calls(const Given& given, const Facts& facts, const Programs& programs, const Causes& causes) {
  FailedCalls calls = read_failed_calls(given, facts, programs, causes);
  ExtractedCalls extracted;
  extracted.discards = std::move(calls.discards);
  std::vector<Failure> failures = unusual(given, facts, calls.groups, extracted.discards);
  const std::vector<Moments> serious = serious_failures(failures, given.nodes.count());
  for (Failure& failure : failures) failure.follows = what_it_follows(failure, given, facts, serious);
  find_torn(failures);
  // Sort by rank: a dump may contain any number of groups, and only the first ones are tried and need all shapes.
  std::stable_sort(failures.begin(), failures.end(),
                   [](const Failure& a, const Failure& b) { return a.order() < b.order(); });
  const auto to_try = static_cast<std::size_t>(std::max(1, given.config().diagnose.max_runs));
  Ids ids;
  extracted.disks = full_disks(given, facts.times, failures);
  extracted.candidates.reserve(failures.size());
  std::size_t tried = 0;
  for (const Failure& failure : failures)
    if (!failure.of_mapping())
      extracted.candidates.push_back(call_candidate(given, facts.times, failure, tried++ < to_try, ids));
  return extracted;
}

}  // namespace rose::diagnose
