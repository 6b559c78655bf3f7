#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "logs/hint/findings.h"

namespace rose::logs {
namespace {

constexpr double kThrown = 0.6;  // an exception that was not caused by a failed call
// An exception that was caused by a failed call. The call has a hint of its own, which is more likely.
constexpr double kThrownOfCall = 0.1;
constexpr double kThrownByPeers = 0.25;  // an exception because a connection was closed: usually the peer has ended
// an exception because of a programming error, which is usually the consequence of something earlier
constexpr double kThrownByProgram = 0.2;
constexpr double kThrownWhileStopping = 0.1;
// Several messages of one kind are parsed, because their exceptions may come from different places, but at most this
// many.
constexpr std::uint64_t kTracesOfKind = 4;

// Exceptions thrown at the same place.
struct Traced : Repeated {
  StackTrace trace;
};

// A key for the place at which the root cause was thrown. If several methods log an exception while it propagates, all
// these messages have the same key.
std::string thrown_at(const StackTrace& trace) {
  const Thrown& root = trace.back();
  std::string key = root.class_name;
  for (std::size_t i = 0; i < std::min<std::size_t>(root.frames.size(), 12); ++i)
    key += fmt::format(" {}.{}:{}", root.frames[i].class_name, root.frames[i].method, root.frames[i].line);
  return key;
}

double weight_of_root(const Thrown& root) {
  const Meaning meaning = read_meaning(root.class_name + ": " + root.message);
  if (meaning.error != 0 && !calls_that_fail(meaning.error, meaning.operation).empty()) return kThrownOfCall;
  switch (kind_of(root.class_name)) {
    case ThrownKind::outside: return kThrown;
    case ThrownKind::network: return kThrownByPeers;
    case ThrownKind::program: return kThrownByProgram;
    case ThrownKind::stopping: return kThrownWhileStopping;
  }
  return kThrown;
}

}  // namespace

// Collects the exceptions in messages that only the failure has, by the place at which they were thrown.
void find_thrown(Findings& found, std::size_t n) {
  const NodeLog& here = found.node(n);
  struct OfKind {
    std::uint64_t read = 0;
    std::vector<std::size_t> last;  // indices of the exceptions in the message that was read last
  };
  std::unordered_map<TemplateId, OfKind> kinds;
  std::map<std::string, std::size_t> known;
  std::vector<Traced> all;
  std::size_t left = kMostTracesRead;
  for (const Message& message : here.messages) {
    const Observed* observed = found.observed_as(n, message.kind);
    if (found.is_normal(n, message.kind) && found.following_lines(message).empty()) continue;
    OfKind& kind = kinds[message.kind];
    if (kind.read < kTracesOfKind && left > 0) {
      const std::string_view text = found.failure.text(message);
      if (text.find('\n') == std::string_view::npos) continue;
      ++kind.read;
      --left;
      kind.last.clear();
      for (StackTrace& trace : read_traces(text)) {
        const auto [at, fresh] = known.try_emplace(thrown_at(trace), all.size());
        if (fresh && all.size() >= kMostThrown) {
          known.erase(at);
          continue;
        }
        kind.last.push_back(at->second);
        if (!fresh) continue;
        Traced& traced = all.emplace_back();
        traced.trace = std::move(trace);
        traced.weight = weight_of_root(traced.trace.back());
      }
    }
    for (const std::size_t i : kind.last) {
      Traced& traced = all[i];
      if (traced.first == nullptr) {
        traced.first = &message;
        traced.weight *= observed != nullptr ? observed->weight : 1;
      }
      traced.last = &message;
      ++traced.count;
    }
  }
  for (Traced& traced : all) {
    found.add(Hint::Kind::thrown, n, traced, kExplicit).trace = std::move(traced.trace);
  }
}

}  // namespace rose::logs
