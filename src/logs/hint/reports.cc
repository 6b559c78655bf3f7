#include "logs/hint/reports.h"

#include <algorithm>
#include <cerrno>

#include "kernel/syscalls.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostFolded = 1'000;  // if a node has more failures than this, their paths are not compared
constexpr double kClearlyMore = 3;          // messages replace others if their weight is greater by this factor
// The weight of an exhausted resource: the message may mean the resource itself instead of one failed call.
constexpr double kResourceItself = 0.35;
constexpr double kUnstatedFailure = 0.28;  // an operation on a file failed, and no reason is stated
// factor by which the second most frequent error is less likely than the most frequent one
constexpr double kNextError = 0.5;

constexpr std::int64_t kEpisode = 600 * kSecond;

}  // namespace

void put(Report& report, const Message& message, const Meaning& meaning, double weight) {
  if (weight * kClearlyMore <= report.weight) return;
  if (weight >= report.weight * kClearlyMore) {
    std::vector<Report> earlier = std::move(report.earlier);
    report = {};
    report.earlier = std::move(earlier);
  }
  if (report.first == nullptr) {
    report.first = &message;
    report.meaning = meaning;
  }
  report.last = &message;
  report.timed_out = report.timed_out || meaning.error == ETIMEDOUT || (meaning.late && meaning.error == 0);
  ++report.count;
  report.weight = std::max(report.weight, weight);
}

// Assumption: while a peer is missing, the nodes that miss it report this again within kEpisode, because retries and
// timeouts rarely take longer. Goal: a timeout in the morning and an outage in the evening are not taken for one
// silence of ten hours.
void put_episode(Report& report, const Message& message, const Meaning& meaning, double weight) {
  if (report.first != nullptr && report.last->ts_ns != kNoTime && message.ts_ns != kNoTime &&
      message.ts_ns - report.last->ts_ns > kEpisode) {
    settle(report);
    Report over = std::move(report);
    report = {};
    report.earlier.push_back(std::move(over));
  }
  put(report, message, meaning, weight);
}

void settle(Report& report) {
  if (report.earlier.empty()) return;
  Report before = std::move(report.earlier.back());
  report.earlier.clear();
  const bool better = report.weight != before.weight ? report.weight > before.weight : report.count > before.count;
  if (!better) report = std::move(before);
}

void fold_paths(std::map<FailedCall, Report>& calls) {
  if (calls.size() > kMostFolded) return;
  for (auto it = calls.begin(); it != calls.end();) {
    const auto& [error, path, peer] = it->first;
    Report* whole = nullptr;
    std::size_t fits = 0;
    for (auto& [key, report] : calls)
      if (std::get<0>(key) == error && std::get<2>(key) == peer && !path.empty() && path[0] != '/' &&
          std::get<1>(key).ends_with("/" + path)) {
        whole = &report;
        ++fits;
      }
    if (fits != 1 || (it->second.meaning.operation != whole->meaning.operation &&
                      it->second.meaning.operation != Operation::unknown)) {
      ++it;
      continue;
    }
    const Report& part = it->second;
    if (part.first < whole->first) whole->first = part.first;
    whole->last = std::max(whole->last, part.last);
    whole->count = std::max(whole->count, part.count);
    whole->weight = std::max(whole->weight, part.weight);
    it = calls.erase(it);
  }
}

void add_silence(Findings& found, std::size_t n, const std::string& other, const Report& report, double weight,
                 bool unnamed, bool answered) {
  Hint& hint = found.add(Hint::Kind::silence, n, report, weight);
  hint.unnamed = unnamed;
  hint.unreachable =
      report.meaning.error == EINVAL || report.meaning.error == ENETUNREACH || report.meaning.error == EHOSTUNREACH;
  hint.no_route = hint.unreachable && report.meaning.error != EHOSTUNREACH;
  if (report.meaning.cut_off) hint.unreachable = hint.no_route = true;
  // If the unresolved name belongs to no node, neither an end nor a pause of a node explains the failure.
  if (report.meaning.unresolved && unnamed) hint.unreachable = true;
  hint.peer = other;
  hint.closed = report.meaning.closed;
  hint.answered = report.meaning.closed || answered;
  hint.timed_out = report.timed_out;
}

void add_in_vain(Findings& found, std::size_t n, const Report& report) {
  const std::vector<std::string_view> tried = calls_of_operation(report.meaning.operation);
  if (tried.empty()) return;
  double weight = kUnstatedFailure;
  const std::vector<int> errors = errors_of(tried.front());
  for (std::size_t i = 0; i < std::min<std::size_t>(errors.size(), 2); ++i, weight *= kNextError) {
    Hint& hint = found.add(Hint::Kind::call, n, report, weight);
    hint.error = errors[i];
    hint.syscalls = tried;
    hint.path = report.meaning.path;
  }
}

void add_call(Findings& found, std::size_t n, const Report& report) {
  Hint& hint = found.add(Hint::Kind::call, n, report, kExplicit);
  hint.error = report.meaning.error;
  hint.syscalls = calls_that_fail(report.meaning.error, report.meaning.operation, report.meaning.exact);
  if (const auto exact = std::find(hint.syscalls.begin(), hint.syscalls.end(), report.meaning.call);
      exact != hint.syscalls.end())
    std::rotate(hint.syscalls.begin(), exact, exact + 1);
  hint.exact = report.meaning.exact;
  hint.path = report.meaning.path;
  hint.peer = report.meaning.lost ? report.meaning.peer : std::string();
  // If a file is named, the failed call is specific enough. Otherwise, the message may be about the resource itself.
  if (!report.meaning.path.empty()) return;
  const bool full = report.meaning.error == ENOSPC || report.meaning.error == EDQUOT;
  if (!full && report.meaning.error != EMFILE && report.meaning.error != ENFILE) return;
  Hint& limit = found.add(Hint::Kind::limit, n, report, kResourceItself);
  limit.limit = full ? Hint::Limit::disk_full : Hint::Limit::descriptors;
}

}  // namespace rose::logs
