#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "logs/hint/findings.h"

namespace rose::logs {
namespace {

// A program is assumed to accept connections only after it has logged this, if the log contains the program's start
// among its first kStartWithin messages. The message about the connections must be among the first kServesWithin
// messages, at most kServesTime after the first one.
constexpr std::size_t kStartWithin = 12, kServesWithin = 2'000;
constexpr std::int64_t kServesTime = 30 * kSecond;

// The start of a program lasts at most kStarting. During this time, its peers start as well. The program must have
// logged its start within the first kLongStartWithin messages.
constexpr std::size_t kLongStartWithin = 60;
constexpr std::int64_t kStarting = 60 * kSecond;
// If there are no timestamps, and the log has at least kLongUntimed messages, the first 1/kUntimedStart of them, but at
// most kMostUntimedStart, belong to the start of the program.
constexpr std::size_t kUntimedStart = 10, kMostUntimedStart = 200, kLongUntimed = 1'000;

bool begins(const Logs& logs, const NodeLog& node) {
  const std::size_t most = std::min(node.messages.size(), kLongStartWithin);
  return std::any_of(node.messages.begin(), node.messages.begin() + static_cast<std::ptrdiff_t>(most),
                     [&](const Message& message) { return read_meaning(logs.text(message)).starting; });
}

// The index of the first message after the first minute.
std::size_t first_minute(const NodeLog& node) {
  const auto first_later = std::find_if(node.messages.begin(), node.messages.end(), [&](const Message& message) {
    return message.ts_ns - node.messages.front().ts_ns >= kStarting;
  });
  return static_cast<std::size_t>(first_later - node.messages.begin());
}

// The number of messages up to the message which reports that the program accepts requests, if that message is near the
// beginning of the log. The messages before it belong to the start, even if none of them reports a start. 0 if there is
// no such message.
std::size_t until_serving(const Logs& logs, const NodeLog& node) {
  const std::size_t most = std::min({node.messages.size(), kLongStartWithin, first_minute(node)});
  for (std::size_t i = 0; i < most; ++i)
    if (read_meaning(logs.text(node.messages[i])).serving) return i + 1;
  return 0;
}

}  // namespace

std::size_t messages_of_start(const Logs& logs, const NodeLog& node) {
  const std::size_t all = node.messages.size();
  if (all == 0) return 0;
  const bool says_so = begins(logs, node);
  if (!is_timed(node)) return !says_so || all < kLongUntimed ? 0 : std::min(all / kUntimedStart, kMostUntimedStart);
  if (node.messages.back().ts_ns - node.messages.front().ts_ns < kLongRun) return 0;
  return says_so ? first_minute(node) : until_serving(logs, node);
}

bool logs_only_start(const Logs& logs, const NodeLog& node) {
  return is_timed(node) && first_minute(node) == node.messages.size() && begins(logs, node);
}

std::int64_t serves_from(const Logs& logs, const NodeLog& node) {
  if (!is_timed(node)) return kNoTime;
  const auto reports = [&](std::size_t i, bool Meaning::* what) {
    return read_meaning(logs.text(node.messages[i])).*what;
  };
  std::size_t i = 0;
  const std::size_t all = node.messages.size();
  while (i < std::min(all, kStartWithin) && !reports(i, &Meaning::starting)) ++i;
  if (i == std::min(all, kStartWithin)) return kNoTime;  // the log begins after the program's start
  const std::int64_t begin = node.messages.front().ts_ns;
  std::unordered_set<TemplateId> read;  // one message per kind is sufficient
  for (i = 0; i < std::min(all, kServesWithin) && node.messages[i].ts_ns - begin < kServesTime; ++i)
    if (read.insert(node.messages[i].kind).second && reports(i, &Meaning::serving)) return node.messages[i].ts_ns;
  return kNoTime;
}

}  // namespace rose::logs
