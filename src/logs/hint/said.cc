#include "logs/hint/said.h"

#include <algorithm>
#include <cerrno>

#include "kernel/syscalls.h"

namespace rose::logs {
namespace {

constexpr std::size_t kMostFolded = 1'000;  // failures of a node that are compared by their paths
constexpr double kOutweighs = 3;            // of two messages of one thing, so much more weight has the one that counts
constexpr double kResourceItself = 0.35;    // an error of a resource, beside the calls that the message may mean
constexpr double kFailedSomehow = 0.28;     // something with a file failed, and why is not said
constexpr double kNextError = 0.5;          // times the weight of the likeliest error, for the next one

}  // namespace

void put(Said& said, const Message& message, const Meaning& meaning, double weight) {
  if (weight * kOutweighs <= said.weight) return;
  if (weight >= said.weight * kOutweighs) said = {};
  if (said.first == nullptr) {
    said.first = &message;
    said.meaning = meaning;
  }
  said.last = &message;
  ++said.count;
  said.weight = std::max(said.weight, weight);
}

void fold_paths(std::map<FailedCall, Said>& calls) {
  if (calls.size() > kMostFolded) return;
  for (auto it = calls.begin(); it != calls.end();) {
    const auto& [error, path, peer] = it->first;
    Said* whole = nullptr;
    std::size_t fits = 0;
    for (auto& [key, said] : calls)
      if (std::get<0>(key) == error && std::get<2>(key) == peer && !path.empty() && path[0] != '/' &&
          std::get<1>(key).ends_with("/" + path)) {
        whole = &said;
        ++fits;
      }
    if (fits != 1 || (it->second.meaning.operation != whole->meaning.operation &&
                      it->second.meaning.operation != Operation::unknown)) {
      ++it;
      continue;
    }
    const Said& part = it->second;
    if (part.first < whole->first) whole->first = part.first;
    whole->last = std::max(whole->last, part.last);
    whole->count = std::max(whole->count, part.count);
    whole->weight = std::max(whole->weight, part.weight);
    it = calls.erase(it);
  }
}

void add_silence(Findings& found, std::size_t n, const std::string& other, const Said& said, double weight,
                 bool unnamed, bool answered) {
  Hint& hint = found.add(Hint::Kind::silence, n, said, weight);
  hint.unnamed = unnamed;
  hint.no_way = said.meaning.error == EINVAL || said.meaning.error == ENETUNREACH || said.meaning.error == EHOSTUNREACH;
  hint.no_route = hint.no_way && said.meaning.error != EHOSTUNREACH;
  if (said.meaning.cut_off) hint.no_way = hint.no_route = true;
  hint.peer = other;
  hint.closed = said.meaning.closed;
  hint.answered = said.meaning.closed || answered;
  hint.timed_out = said.meaning.error == ETIMEDOUT || (said.meaning.late && said.meaning.error == 0);
}

void add_in_vain(Findings& found, std::size_t n, const Said& said) {
  const std::vector<std::string_view> tried = calls_of_operation(said.meaning.operation);
  if (tried.empty()) return;
  double weight = kFailedSomehow;
  const std::vector<int> errors = errors_of(tried.front());
  for (std::size_t i = 0; i < std::min<std::size_t>(errors.size(), 2); ++i, weight *= kNextError) {
    Hint& hint = found.add(Hint::Kind::call, n, said, weight);
    hint.error = errors[i];
    hint.syscalls = tried;
    hint.path = said.meaning.path;
  }
}

void add_call(Findings& found, std::size_t n, const Said& said) {
  Hint& hint = found.add(Hint::Kind::call, n, said, kPlain);
  hint.error = said.meaning.error;
  hint.syscalls = calls_that_fail(said.meaning.error, said.meaning.operation, said.meaning.exact);
  if (const auto exact = std::find(hint.syscalls.begin(), hint.syscalls.end(), said.meaning.call);
      exact != hint.syscalls.end())
    std::rotate(hint.syscalls.begin(), exact, exact + 1);
  hint.exact = said.meaning.exact;
  hint.path = said.meaning.path;
  hint.peer = said.meaning.lost ? said.meaning.peer : std::string();
  // A file that is named says more. Without one, the resource itself is what the message is about.
  if (!said.meaning.path.empty()) return;
  const bool full = said.meaning.error == ENOSPC || said.meaning.error == EDQUOT;
  if (!full && said.meaning.error != EMFILE && said.meaning.error != ENFILE) return;
  Hint& limit = found.add(Hint::Kind::limit, n, said, kResourceItself);
  limit.limit = full ? Hint::Limit::disk_full : Hint::Limit::descriptors;
}

}  // namespace rose::logs
