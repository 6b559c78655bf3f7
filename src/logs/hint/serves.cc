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

}  // namespace

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
