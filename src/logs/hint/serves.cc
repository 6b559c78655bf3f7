#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "logs/hint/findings.h"

namespace rose::logs {
namespace {

constexpr std::size_t kBeginsWithin = 12;           // messages of a log in which a program says that it begins
constexpr std::size_t kServesWithin = 2'000;        // messages, and
constexpr std::int64_t kServesSoon = 30 * kSecond;  // time, in which it says that it can be reached

constexpr std::size_t kStartsWithin = 60;         // messages of a log in which a program says that it begins
constexpr std::int64_t kStarting = 60 * kSecond;  // at most, until it and its peers are up
constexpr std::size_t kUntimedStart = 10;         // of an untimed log, this part, and
constexpr std::size_t kMostUntimedStart = 200;    // at most so many messages, if it has
constexpr std::size_t kLongUntimed = 1'000;       // so many

bool begins(const Logs& logs, const NodeLog& node) {
  const std::size_t most = std::min(node.messages.size(), kStartsWithin);
  return std::any_of(node.messages.begin(), node.messages.begin() + static_cast<std::ptrdiff_t>(most),
                     [&](const Message& message) { return read_meaning(logs.text(message)).starting; });
}

// The first message that is not of the first minute.
std::size_t first_minute(const NodeLog& node) {
  const auto behind = std::find_if(node.messages.begin(), node.messages.end(), [&](const Message& message) {
    return message.ts_ns - node.messages.front().ts_ns >= kStarting;
  });
  return static_cast<std::size_t>(behind - node.messages.begin());
}

}  // namespace

std::size_t messages_of_start(const Logs& logs, const NodeLog& node) {
  const std::size_t all = node.messages.size();
  if (all == 0 || !begins(logs, node)) return 0;
  if (!is_timed(node)) return all < kLongUntimed ? 0 : std::min(all / kUntimedStart, kMostUntimedStart);
  return node.messages.back().ts_ns - node.messages.front().ts_ns < kRanOn ? 0 : first_minute(node);
}

bool only_started(const Logs& logs, const NodeLog& node) {
  return is_timed(node) && first_minute(node) == node.messages.size() && begins(logs, node);
}

std::int64_t serves_from(const Logs& logs, const NodeLog& node) {
  if (!is_timed(node)) return kNoTime;
  const auto says = [&](std::size_t i, bool Meaning::* what) {
    return read_meaning(logs.text(node.messages[i])).*what;
  };
  std::size_t i = 0;
  const std::size_t all = node.messages.size();
  while (i < std::min(all, kBeginsWithin) && !says(i, &Meaning::starting)) ++i;
  if (i == std::min(all, kBeginsWithin)) return kNoTime;  // the log begins later than the program
  const std::int64_t begin = node.messages.front().ts_ns;
  std::unordered_set<TemplateId> read;  // messages of one kind say one thing
  for (i = 0; i < std::min(all, kServesWithin) && node.messages[i].ts_ns - begin < kServesSoon; ++i)
    if (read.insert(node.messages[i].kind).second && says(i, &Meaning::serving)) return node.messages[i].ts_ns;
  return kNoTime;
}

}  // namespace rose::logs
