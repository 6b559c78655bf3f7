#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "logs/hint/findings.h"

namespace rose::logs {
namespace {

// another node has taken over the node's role; it is unknown what happened to the node
constexpr double kLostRole = 0.28;
constexpr std::size_t kMostMoves = 6;  // a message that shows a role occurs at most this often

// A message that shows which node has a role.
struct RoleReport {
  std::size_t node = 0;
  std::uint32_t message = 0;
  std::vector<std::uint64_t> numbers;  // numbers in the text; without timestamps, they give the order of the reports
};

std::int64_t ts_of(const Findings& found, const RoleReport& report) {
  return found.node(report.node).messages[report.message].ts_ns;
}

std::vector<std::uint64_t> numbers_of(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < text.size() && numbers.size() < 8; ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    std::uint64_t number = 0;
    for (int digits = 0; i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 18; ++i, ++digits)
      number = number * 10 + static_cast<std::uint64_t>(text[i] - '0');
    numbers.push_back(number);
  }
  return numbers;
}

// True if other nodes clearly miss the node at that time. Their messages are then better evidence of a partition.
bool is_missed(const Findings& found, const std::string& loser, std::int64_t ts) {
  return ts != kNoTime && std::any_of(found.hints.begin(), found.hints.end(), [&](const Hint& hint) {
           return hint.kind == Hint::Kind::silence && hint.weight >= kLogGap &&
                  (hint.node == loser || hint.peer == loser) && hint.ts_ns != kNoTime &&
                  std::abs(hint.ts_ns - ts) <= kNoticeTime;
         });
}

// Adds an end, a pause and partitions of the node that lost its role. They begin shortly before the message `next`,
// which shows that another node has taken over the role.
void add_lost_role(Findings& found, const std::string& loser, const RoleReport& next, double share) {
  const Message& message = found.node(next.node).messages[next.message];
  const std::int64_t began = message.ts_ns == kNoTime ? kNoTime : message.ts_ns - kEarlyEnd;
  const auto suspect = [&](Hint::Kind kind) -> Hint& {
    Hint& hint = found.add(kind, next.node, message, kLostRole * share);
    hint.node = loser;
    hint.ts_ns = began;
    hint.words += fmt::format(", which {} says in a run without faults: it may have lost its role", loser);
    return hint;
  };
  suspect(Hint::Kind::end).signal = SIGKILL;
  if (began != kNoTime) suspect(Hint::Kind::stop).until_ns = message.ts_ns;
  if (is_missed(found, loser, message.ts_ns)) return;
  for (const NodeLog& other : found.failure.nodes)
    if (other.node != loser && !other.node.empty()) suspect(Hint::Kind::silence).peer = other.node;
}

}  // namespace

// A kind of message shows a role, as in "leader of term 2", if in the run without faults only one node logs it, and
// logs it rarely. If several nodes log it in the failure, the first of them may have lost the role.
void find_lost_roles(Findings& found) {
  if (found.normal.nodes.size() < 2 || found.failure.nodes.size() < 2) return;
  std::map<TemplateId, std::vector<RoleReport>> by_kind;
  for (std::size_t n = 0; n < found.failure.nodes.size(); ++n)
    for (std::uint32_t i = 0; i < found.node(n).messages.size(); ++i) {
      std::vector<RoleReport>& all = by_kind[found.node(n).messages[i].kind];
      if (all.size() <= kMostMoves) all.push_back({n, i, numbers_of(found.failure.text(found.node(n).messages[i]))});
    }
  // Key: the node that lost a role; value: the messages of the nodes that took it over.
  std::map<std::string, std::vector<RoleReport>> next_of;
  for (auto& [kind, all] : by_kind) {
    std::uint64_t usually = 0;
    std::vector<std::string> players;  // nodes that logged such messages in the run without faults
    for (const NodeLog& other : found.normal.nodes)
      if (const std::uint64_t count = kind < other.counts.size() ? other.counts[kind] : 0; count != 0) {
        usually += count;
        players.push_back(other.node);
      }
    if (players.size() != 1 || usually > kMostMoves || all.size() <= usually || all.size() > kMostMoves) continue;
    const bool by_time = std::all_of(all.begin(), all.end(),
                                     [&](const RoleReport& report) { return is_timed(found.node(report.node)); });
    std::stable_sort(all.begin(), all.end(), [&](const RoleReport& a, const RoleReport& b) {
      return by_time ? ts_of(found, a) < ts_of(found, b) : a.numbers < b.numbers;
    });
    const auto next =
        std::find_if(all.begin(), all.end(), [&](const RoleReport& report) { return report.node != all.front().node; });
    if (next == all.end() || found.is_starting(next->node, ts_of(found, *next))) continue;
    const std::string& loser = by_time ? found.node(all.front().node).node : players.front();
    if (!loser.empty()) next_of[loser].push_back(*next);
  }
  // If a role really moved, messages of several kinds show it. A message of only one kind may come from any node by
  // chance. So the more kinds show that a node had the role before, the greater is the weight of the hints that this
  // node lost it.
  std::size_t most = 0;
  for (const auto& [loser, all] : next_of) most = std::max(most, all.size());
  for (const auto& [loser, all] : next_of)
    for (const RoleReport& next : all)
      add_lost_role(found, loser, next, static_cast<double>(all.size()) / static_cast<double>(most));
}

}  // namespace rose::logs
