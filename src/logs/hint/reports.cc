#include "logs/hint/reports.h"

#include <algorithm>
#include <cerrno>

#include "kernel/syscalls.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostFolded = 1'000;  // failures of a node that are compared by their paths
constexpr double kOutweighs = 3;            // of two messages of one thing, so much more weight has the one that counts
constexpr double kResourceItself = 0.35;    // an error of a resource, beside the calls that the message may mean
constexpr double kFailedSomehow = 0.28;     // something with a file failed, without a stated reason
constexpr double kNextError = 0.5;          // times the weight of the likeliest error, for the next one

}  // namespace

void put(Report& report, const Message& message, const Meaning& meaning, double weight) {
  if (weight * kOutweighs <= report.weight) return;
  if (weight >= report.weight * kOutweighs) report = {};
  if (report.first == nullptr) {
    report.first = &message;
    report.meaning = meaning;
  }
  report.last = &message;
  ++report.count;
  report.weight = std::max(report.weight, weight);
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
  hint.no_way =
      report.meaning.error == EINVAL || report.meaning.error == ENETUNREACH || report.meaning.error == EHOSTUNREACH;
  hint.no_route = hint.no_way && report.meaning.error != EHOSTUNREACH;
  if (report.meaning.cut_off) hint.no_way = hint.no_route = true;
  // Of a name that is none of a node's: no node's end or pause explains that it was not resolved.
  if (report.meaning.unresolved && unnamed) hint.no_way = true;
  hint.peer = other;
  hint.closed = report.meaning.closed;
  hint.answered = report.meaning.closed || answered;
  hint.timed_out = report.meaning.error == ETIMEDOUT || (report.meaning.late && report.meaning.error == 0);
}

void add_in_vain(Findings& found, std::size_t n, const Report& report) {
  const std::vector<std::string_view> tried = calls_of_operation(report.meaning.operation);
  if (tried.empty()) return;
  double weight = kFailedSomehow;
  const std::vector<int> errors = errors_of(tried.front());
  for (std::size_t i = 0; i < std::min<std::size_t>(errors.size(), 2); ++i, weight *= kNextError) {
    Hint& hint = found.add(Hint::Kind::call, n, report, weight);
    hint.error = errors[i];
    hint.syscalls = tried;
    hint.path = report.meaning.path;
  }
}

void add_call(Findings& found, std::size_t n, const Report& report) {
  Hint& hint = found.add(Hint::Kind::call, n, report, kPlain);
  hint.error = report.meaning.error;
  hint.syscalls = calls_that_fail(report.meaning.error, report.meaning.operation, report.meaning.exact);
  if (const auto exact = std::find(hint.syscalls.begin(), hint.syscalls.end(), report.meaning.call);
      exact != hint.syscalls.end())
    std::rotate(hint.syscalls.begin(), exact, exact + 1);
  hint.exact = report.meaning.exact;
  hint.path = report.meaning.path;
  hint.peer = report.meaning.lost ? report.meaning.peer : std::string();
  // A file that is named says more. Without one, the resource itself is what the message is about.
  if (!report.meaning.path.empty()) return;
  const bool full = report.meaning.error == ENOSPC || report.meaning.error == EDQUOT;
  if (!full && report.meaning.error != EMFILE && report.meaning.error != ENFILE) return;
  Hint& limit = found.add(Hint::Kind::limit, n, report, kResourceItself);
  limit.limit = full ? Hint::Limit::disk_full : Hint::Limit::descriptors;
}

}  // namespace rose::logs
