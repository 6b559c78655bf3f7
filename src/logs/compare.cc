#include "logs/compare.h"
#include "logs/mask.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace rose::logs {
namespace {

constexpr double kMoreOften = 0.3;     // weight of a kind that the normal log also has, but far less often
constexpr std::uint64_t kFarMore = 3;  // factor: from this many times the normal count on, a kind is far more frequent
constexpr double kQuiet = 0.5;         // factor: the message is neither a warning nor an error by its level or words

// The longest subsequence of `pairs` that ascends in both indices.
std::vector<Matched> ascending(std::vector<Matched> pairs) {
  std::sort(pairs.begin(), pairs.end(), [](const Matched& a, const Matched& b) { return a.failure < b.failure; });
  // For each length, the index of the last pair of a chain of this length: of the chain that ends at the smallest
  // `normal`, because most pairs can extend it.
  std::vector<std::uint32_t> tails;
  std::vector<std::uint32_t> before(pairs.size(), UINT32_MAX);
  for (std::uint32_t i = 0; i < pairs.size(); ++i) {
    const auto place =
        std::lower_bound(tails.begin(), tails.end(), pairs[i].normal,
                         [&](std::uint32_t tail, std::uint32_t normal) { return pairs[tail].normal < normal; });
    if (place != tails.begin()) before[i] = *(place - 1);
    if (place == tails.end()) tails.push_back(i);
    else *place = i;
  }
  std::vector<Matched> chain;
  for (std::uint32_t i = tails.empty() ? UINT32_MAX : tails.back(); i != UINT32_MAX; i = before[i])
    chain.push_back(pairs[i]);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// Matches the nth message of each kind with the nth message of the same kind. This is the fallback if Myers' algorithm
// would take too long.
std::vector<Matched> by_occurrence(std::span<const TemplateId> failure, std::span<const TemplateId> normal) {
  std::unordered_map<TemplateId, std::vector<std::uint32_t>> places;
  for (std::uint32_t i = 0; i < normal.size(); ++i) places[normal[i]].push_back(i);
  std::unordered_map<TemplateId, std::size_t> used;
  std::vector<Matched> pairs;
  for (std::uint32_t i = 0; i < failure.size(); ++i) {
    const auto found = places.find(failure[i]);
    if (found == places.end()) continue;
    std::size_t& n = used[failure[i]];
    if (n < found->second.size()) pairs.push_back({i, found->second[n++]});
  }
  return ascending(std::move(pairs));
}

// Myers' greedy algorithm. Returns false if the sequences differ by more than kMostEdits.
bool myers(std::span<const TemplateId> a, std::span<const TemplateId> b, std::vector<Matched>& matched) {
  const auto n = static_cast<std::int64_t>(a.size());
  const auto m = static_cast<std::int64_t>(b.size());
  const auto most = static_cast<std::int64_t>(kMostEdits);
  std::vector<std::vector<std::int32_t>> trace;  // for each step, the furthest x on each diagonal
  std::vector<std::int32_t> furthest(static_cast<std::size_t>(2 * most + 3), 0);
  const auto at = [&](std::int64_t k) -> std::int32_t& { return furthest[static_cast<std::size_t>(k + most + 1)]; };
  std::int64_t edits = -1;
  for (std::int64_t d = 0; d <= most && edits < 0; ++d) {
    trace.emplace_back(furthest.begin() + (most + 1 - d - 1), furthest.begin() + (most + 1 + d + 2));
    for (std::int64_t k = -d; k <= d; k += 2) {
      std::int64_t x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      std::int64_t y = x - k;
      while (x < n && y < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)]) ++x, ++y;
      at(k) = static_cast<std::int32_t>(x);
      if (x >= n && y >= m) {
        edits = d;
        break;
      }
    }
  }
  if (edits < 0) return false;
  std::int64_t x = n, y = m;
  for (std::int64_t d = edits; d >= 0; --d) {
    const std::vector<std::int32_t>& then = trace[static_cast<std::size_t>(d)];
    const auto old = [&](std::int64_t k) {
      return static_cast<std::int64_t>(then[static_cast<std::size_t>(k + d + 1)]);
    };
    const std::int64_t k = x - y;
    const std::int64_t from = k == -d || (k != d && old(k - 1) < old(k + 1)) ? k + 1 : k - 1;
    const std::int64_t from_x = d == 0 ? 0 : old(from);
    const std::int64_t from_y = d == 0 ? 0 : from_x - from;
    while (x > from_x && y > from_y) {
      --x, --y;
      matched.push_back({static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)});
    }
    x = from_x;
    y = from_y;
  }
  std::reverse(matched.begin(), matched.end());
  return true;
}

// The messages of each thread, by the name of the thread.
std::map<std::string, std::vector<std::uint32_t>> threads_of(const Logs& logs, const NodeLog& node) {
  std::map<std::string, std::vector<std::uint32_t>> threads;
  for (std::uint32_t i = 0; i < node.messages.size(); ++i) threads[logs.streams[node.messages[i].stream]].push_back(i);
  return threads;
}

std::vector<TemplateId> kinds_of(const NodeLog& node, const std::vector<std::uint32_t>& indices) {
  std::vector<TemplateId> kinds;
  kinds.reserve(indices.size());
  for (const std::uint32_t i : indices) kinds.push_back(node.messages[i].kind);
  return kinds;
}

std::uint64_t count_of(const NodeLog& node, TemplateId kind) {
  return kind < node.counts.size() ? node.counts[kind] : 0;
}

// The normal node with the same name. If there is none, the normal node that shares the most kinds of messages.
std::size_t counterpart(const NodeLog& node, const Logs& normal) {
  std::size_t best = kNoNode;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < normal.nodes.size(); ++i) {
    if (!node.node.empty() && normal.nodes[i].node == node.node) return i;
    std::uint64_t common = 0;
    for (TemplateId kind = 0; kind < node.counts.size(); ++kind)
      common += node.counts[kind] != 0 && count_of(normal.nodes[i], kind) != 0 ? 1 : 0;
    if (common > most) {
      most = common;
      best = i;
    }
  }
  return best;
}

}  // namespace

std::vector<Matched> match_sequences(std::span<const TemplateId> failure, std::span<const TemplateId> normal) {
  std::vector<Matched> matched;
  std::size_t head = 0;
  while (head < failure.size() && head < normal.size() && failure[head] == normal[head]) {
    matched.push_back({static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(head)});
    ++head;
  }
  const auto rest_a = failure.subspan(head), rest_b = normal.subspan(head);
  std::vector<Matched> rest;
  if (rest_a.empty() || rest_b.empty()) return matched;
  const std::size_t apart =
      rest_a.size() > rest_b.size() ? rest_a.size() - rest_b.size() : rest_b.size() - rest_a.size();
  if (apart > kMostEdits || !myers(rest_a, rest_b, rest)) rest = by_occurrence(rest_a, rest_b);
  for (const Matched& pair : rest)
    matched.push_back(
        {pair.failure + static_cast<std::uint32_t>(head), pair.normal + static_cast<std::uint32_t>(head)});
  return matched;
}

Difference compare(const Logs& failure, const Logs& normal, const Templates& kinds) {
  Difference out;
  for (std::size_t n = 0; n < failure.nodes.size(); ++n) {
    const NodeLog& node = failure.nodes[n];
    NodeDifference& difference = out.nodes.emplace_back();
    difference.normal = counterpart(node, normal);
    std::vector<bool> known(node.messages.size());
    if (difference.normal != kNoNode) {
      const NodeLog& other = normal.nodes[difference.normal];
      const auto theirs = threads_of(normal, other);
      for (const auto& [thread, indices] : threads_of(failure, node)) {
        const auto same = theirs.find(thread);
        if (same == theirs.end()) continue;
        for (const Matched& pair : match_sequences(kinds_of(node, indices), kinds_of(other, same->second))) {
          known[indices[pair.failure]] = true;
          difference.matched.push_back({indices[pair.failure], same->second[pair.normal]});
        }
      }
      difference.matched = ascending(std::move(difference.matched));
    }
    std::unordered_map<TemplateId, std::size_t> seen;
    for (std::uint32_t i = 0; i < node.messages.size(); ++i) {
      const Message& message = node.messages[i];
      if (known[i] || !seen.try_emplace(message.kind, i).second) continue;
      std::uint64_t most = 0;
      for (const NodeLog& other : normal.nodes) most = std::max(most, count_of(other, message.kind));
      const std::uint64_t count = count_of(node, message.kind);
      const bool loud = message.level >= Level::warning || error_words(kinds.text(message.kind)) != 0;
      if (normal.nodes.empty() && !loud) continue;
      // A kind that the normal log also has is an observable only if it occurs kFarMore times as often, plus twice.
      if (most != 0 && count < most * kFarMore + 2) continue;
      out.observed.push_back({n, message.kind, i, count, most, (most == 0 ? 1 : kMoreOften) * (loud ? 1 : kQuiet)});
    }
  }
  return out;
}

}  // namespace rose::logs
